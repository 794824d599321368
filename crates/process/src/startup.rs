//! Lets go of the program's own code that only its start needed.
//!
//! The kernel maps code around each place that is executed, so that a start leaves far more of a large program in the
//! process's memory than it goes on to use. The pages are clean copies of the file: dropped ones come back by themselves.

/// Drops the executable pages of this program from this process's memory; what is executed next is mapped anew, which takes
/// microseconds. Does nothing on systems other than Linux.
pub fn let_go_of_startup_code() {
    #[cfg(target_os = "linux")]
    if let Err(error) = linux::drop_code() {
        tracing::debug!(%error, "the code of the start stays in memory");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{env, ffi::c_void, fs, io};

    use rustix::mm::{Advice, madvise};

    pub(super) fn drop_code() -> io::Result<()> {
        let program = env::current_exe()?;
        let maps = fs::read_to_string("/proc/self/maps")?;
        for line in maps.lines().filter(|line| program.to_str().is_some_and(|program| line.ends_with(program))) {
            if let Some((start, length)) = executable_range(line) {
                drop_range(start, length)?;
            }
        }
        Ok(())
    }

    /// The address and length of a mapping, if it is code that nobody can have written to.
    pub(super) fn executable_range(line: &str) -> Option<(usize, usize)> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        if fields.next()? != "r-xp" {
            return None;
        }
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some((start, end.checked_sub(start)?))
    }

    #[expect(unsafe_code, reason = "dropping pages has no safe wrapper")]
    fn drop_range(start: usize, length: usize) -> io::Result<()> {
        // SAFETY: the range is a whole mapping of the program's file that is not writable, so each of its pages is as in the
        // file, and the kernel maps it again from there when it is next executed.
        unsafe { madvise(std::ptr::without_provenance_mut::<c_void>(start), length, Advice::LinuxDontNeed) }?;
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::executable_range;

    #[test]
    fn only_code_that_cannot_have_changed_is_dropped() {
        assert_eq!(executable_range("1000-3000 r-xp 00002000 fe:00 77 /usr/bin/x"), Some((0x1000, 0x2000)));
        for line in
            ["1000-3000 r--p 0 fe:00 77 /usr/bin/x", "1000-3000 rwxp 0 fe:00 77 /x", "3000-1000 r-xp 0 0 0 /x", "", "nothing"]
        {
            assert_eq!(executable_range(line), None, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        for _ in 0..3 {
            super::let_go_of_startup_code();
        }
    }
}
