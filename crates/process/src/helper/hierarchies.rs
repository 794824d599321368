//! Finding the control group hierarchies of this process from what the kernel lists.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What a hierarchy can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Pids,
}

/// The two kinds of hierarchies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A group in which groups may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) version: Version,
    pub(super) folder: PathBuf,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

impl Base {
    /// Whether groups in here get `controller`. It is not turned on here: that would be the system's to decide.
    pub(super) fn offers(&self, controller: Controller) -> bool {
        let on = || fs::read_to_string(self.folder.join("cgroup.subtree_control"));
        self.version == Version::One || on().is_ok_and(|list| has_word(&list, controller.name()))
    }
}

/// Where groups with `controller` might be made, best first, by `/proc/self/cgroup` and `/proc/self/mountinfo`.
///
/// On version 1 that is inside this process's own group. On version 2 a group with processes cannot hold groups with
/// limits, unless it is the root, so that the group around it is the second choice.
pub(super) fn candidates(controller: Controller, own: &str, mounts: &str) -> Vec<Base> {
    let version_one = own_path(own, controller.name()).and_then(|path| {
        let mount = find_mount(mounts, "cgroup", Some(controller.name()))?;
        Some(Base { version: Version::One, folder: mount.folder_of(path) })
    });
    if let Some(base) = version_one {
        return vec![base];
    }
    let (Some(path), Some(mount)) = (own_path(own, ""), find_mount(mounts, "cgroup2", None)) else { return Vec::new() };
    let folder = mount.folder_of(path);
    let around = folder.parent().filter(|around| around.starts_with(&mount.point)).map(Path::to_owned);
    [Some(folder), around].into_iter().flatten().map(|folder| Base { version: Version::Two, folder }).collect()
}

/// This process's path in the hierarchy with `controller`; the empty name stands for version 2.
fn own_path<'text>(own: &'text str, controller: &str) -> Option<&'text str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let matches = if controller.is_empty() { number == "0" } else { controllers.split(',').any(|name| name == controller) };
        matches.then_some(path)
    })
}

/// A mounted hierarchy.
struct Mount {
    /// Which part of it is mounted.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    fn folder_of(&self, path: &str) -> PathBuf {
        // Inside a container the path may lie outside of what is mounted; then the mounted part is one's own.
        Path::new(path).strip_prefix(&self.root).map_or_else(|_| self.point.clone(), |rest| self.point.join(rest))
    }
}

fn find_mount(mounts: &str, kind: &str, option: Option<&str>) -> Option<Mount> {
    mounts.lines().find_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let (found, options) = (system.next()?, system.nth(1)?);
        let has_option = option.is_none_or(|option| options.split(',').any(|name| name == option));
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        (found == kind && has_option).then(|| Mount { root: root.into(), point: point.into() })
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_MOUNTS: &str = "\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:7 - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const UNIFIED_MOUNTS: &str = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn found(controller: Controller, own: &str, mounts: &str) -> Vec<String> {
        let bases = candidates(controller, own, mounts);
        bases.iter().map(|base| format!("{:?} {}", base.version, base.folder.display())).collect()
    }

    #[test]
    fn version_one_is_preferred_where_it_has_the_controller() {
        let own = "8:pids:/\n4:memory:/jobs/a\n0::/unified\n";
        assert_eq!(found(Controller::Memory, own, HYBRID_MOUNTS), ["One /sys/fs/cgroup/memory/jobs/a"]);
        assert_eq!(found(Controller::Pids, own, HYBRID_MOUNTS), ["One /sys/fs/cgroup/pids/"]);
    }

    #[test]
    fn version_two_offers_the_own_group_and_the_one_around_it() {
        let own = "0::/user.slice/app.slice/terminal.scope\n";
        let expected = ["Two /sys/fs/cgroup/user.slice/app.slice/terminal.scope", "Two /sys/fs/cgroup/user.slice/app.slice"];
        assert_eq!(found(Controller::Memory, own, UNIFIED_MOUNTS), expected);
        assert_eq!(found(Controller::Pids, "0::/\n", UNIFIED_MOUNTS), ["Two /sys/fs/cgroup/"]);
    }

    #[test]
    fn containers_that_see_a_part_only_use_that_part() {
        let mounts = "30 23 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(found(Controller::Memory, "4:memory:/docker/abc/x\n", mounts), ["One /sys/fs/cgroup/memory/x"]);
        assert_eq!(found(Controller::Memory, "4:memory:/elsewhere\n", mounts), ["One /sys/fs/cgroup/memory"]);
        assert!(found(Controller::Memory, "", "").is_empty());
        assert!(found(Controller::Memory, "0::/\n", "nonsense\n - \n").is_empty());
    }

    #[test]
    fn a_controller_is_offered_once_it_is_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = Base { version: Version::Two, folder: folder.path().to_owned() };
        assert!(!base.offers(Controller::Memory), "the file is not there");
        fs::write(folder.path().join("cgroup.subtree_control"), "cpu memory\n").expect("written");
        assert!(base.offers(Controller::Memory));
    }
}
