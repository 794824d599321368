//! A note inside each module that is built here: from which source it was. It lies in a custom section, which
//! every runtime ignores, and tells whether a module still belongs to the source beside it.

const SECTION: &str = "skillz.source";

/// Identifies what a module is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SourceHash([u8; 32]);

/// What a module says about its source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stamped {
    /// It was built from this source.
    Fresh,
    /// It was built from another.
    Stale,
    /// It does not say.
    Unknown,
}

impl SourceHash {
    /// Hashes a program with what it depends on.
    pub(crate) fn of(code: &str, dependencies: &[String]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for dependency in dependencies {
            hasher.update(dependency.trim().as_bytes()).update(b"\n");
        }
        hasher.update(b"\0").update(code.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// The hash as a file name.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.wasm", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Adds the note to a module.
pub(crate) fn write(module: &mut Vec<u8>, hash: SourceHash) {
    let content = SECTION.len() + 1 + hash.0.len();
    // Both lengths are below 128, and so one byte in LEB128.
    module.extend_from_slice(&[0, content as u8, SECTION.len() as u8]);
    module.extend_from_slice(SECTION.as_bytes());
    module.extend_from_slice(&hash.0);
}

/// Looks for the note. It is written last, and only looked for there.
pub(crate) fn read(module: &[u8], hash: SourceHash) -> Stamped {
    let Some((rest, found)) = module.split_last_chunk::<32>() else { return Stamped::Unknown };
    if !rest.ends_with(SECTION.as_bytes()) {
        return Stamped::Unknown;
    }
    if *found == hash.0 { Stamped::Fresh } else { Stamped::Stale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_module_is_still_a_module() {
        let mut module = wat::parse_str("(module (func (export \"_start\")))").unwrap();
        let hash = SourceHash::of("fn main() {}", &["serde".into()]);
        assert_eq!(read(&module, hash), Stamped::Unknown);
        write(&mut module, hash);
        assert_eq!(read(&module, hash), Stamped::Fresh);
        assert_eq!(read(&module, SourceHash::of("fn main() {}", &[])), Stamped::Stale);
        wasmtime::Module::validate(&wasmtime::Engine::default(), &module).unwrap();
    }
}
