//! Archives of friends and enemies: what is sound is unpacked, what is not is refused, and nothing outside is touched.

use std::{io::Write, process::Command};

use flate2::{Compression, write::GzEncoder};
use skillz_tool::ErrorKind;
use tar::EntryType;

use crate::support::{MANIFEST, Workshop, read};

/// An entry of a tar archive as its bytes have it: libraries refuse to write most of these names.
fn entry(name: &str, kind: EntryType, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for entry in entries {
        encoder.write_all(entry).unwrap();
    }
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

fn file(name: &str) -> Vec<u8> {
    entry(name, EntryType::Regular, "", b"evil")
}

/// A zip archive, written by Python: `(name, content, Unix mode)`.
fn zip(workshop: &Workshop, name: &str, program: &str) {
    let path = workshop.write(name, "");
    let program = format!(
        "import sys, zipfile, warnings\nwarnings.simplefilter('ignore')\nz = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n{program}\nz.close()\n"
    );
    let status = Command::new("python3").args(["-c", &program]).arg(path).status().expect("python3 starts");
    assert!(status.success(), "{name}");
}

#[tokio::test]
async fn sound_archives_are_unpacked() {
    let workshop = Workshop::new();
    let tool = [
        entry("pax_global_header", EntryType::XGlobalHeader, "", b"52 comment=0123456789012345678901234567890123456789\n"),
        entry("./", EntryType::Directory, "", b""),
        entry("greet/", EntryType::Directory, "", b""),
        entry("greet/manifest.json", EntryType::Regular, "", MANIFEST.as_bytes()),
        entry("greet/main.sh", EntryType::Regular, "", b"echo one"),
        entry("greet/", EntryType::Directory, "", b""),
    ];
    let plain: Vec<u8> = tool.concat();
    workshop.write("work/a.tar.gz", packed(&tool));
    workshop.write("work/b.tgz", packed(&tool));
    workshop.write("work/c.tar", [plain.as_slice(), &[0; 1024]].concat());
    zip(
        &workshop,
        "work/d.zip",
        &format!(
            "z.writestr('greet/', '')\nz.writestr('greet/manifest.json', '''{MANIFEST}''')\nz.writestr('greet/main.sh', 'echo one')"
        ),
    );
    // As browsers and programs that cannot seek write them: stored, and with sizes behind the data.
    zip(
        &workshop,
        "work/e.zip",
        "class Pipe:\n  def __init__(self, f): self.f = f\n  def write(self, b): return self.f.write(b)\n  def flush(self): self.f.flush()\n\
         z.close()\nz = zipfile.ZipFile(Pipe(open(sys.argv[1], 'wb')), 'w')\nz.writestr('greet/main.sh', 'echo one')",
    );
    for name in ["a.tar.gz", "b.tgz", "c.tar", "d.zip", "e.zip"] {
        let fetched = workshop.fetch(name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read(&fetched, "greet/main.sh"), "echo one", "{name}");
        let file = format!("file://{}", workshop.path("work").join(name).display());
        assert_eq!(read(&workshop.fetch(&file).await.unwrap(), "greet/main.sh"), "echo one", "{file}");
    }
    assert!(!workshop.has_scratch());
}

#[tokio::test]
async fn entries_that_lead_out_are_refused() {
    let workshop = Workshop::new();
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("traversal", vec![file("../../evil")]),
        ("traversal inside", vec![file("a/../../../evil")]),
        ("absolute", vec![file("/tmp/skillz-import-evil")]),
        ("backslash", vec![file("..\\evil")]),
        ("drive", vec![file("C:/evil")]),
        ("symbolic link", vec![entry("link", EntryType::Symlink, "/etc", b""), file("link/evil")]),
        ("harmless link", vec![entry("link", EntryType::Symlink, "other", b"")]),
        ("hard link", vec![entry("link", EntryType::Link, "/etc/passwd", b"")]),
        ("device", vec![entry("null", EntryType::Char, "", b"")]),
        ("block device", vec![entry("disk", EntryType::Block, "", b"")]),
        ("pipe", vec![entry("pipe", EntryType::Fifo, "", b"")]),
        ("twice", vec![file("a"), file("a")]),
        ("twice by another name", vec![file("a"), file("./a")]),
        ("file and folder", vec![file("a"), file("a/b")]),
        ("folder and file", vec![entry("a/", EntryType::Directory, "", b""), file("a")]),
    ];
    for (what, entries) in cases {
        workshop.write("work/evil.tar.gz", packed(&entries));
        let before = workshop.everything();
        let error = workshop.fetch("evil.tar.gz").await.expect_err(what);
        assert_eq!(error.kind, ErrorKind::Denied, "{what}: {error}");
        assert_eq!(workshop.everything(), before, "{what}");
    }
    assert!(!std::path::Path::new("/tmp/skillz-import-evil").exists());
}

#[tokio::test]
async fn zip_archives_that_lie_are_refused() {
    let workshop = Workshop::new();
    for (what, program) in [
        ("traversal", "z.writestr('../../evil', 'x')"),
        ("absolute", "z.writestr('/tmp/skillz-import-evil', 'x')"),
        ("backslash", "i = zipfile.ZipInfo('a'); i.filename = '..\\\\evil'; z.writestr(i, 'x')"),
        ("link", "i = zipfile.ZipInfo('link'); i.create_system = 3; i.external_attr = 0o120777 << 16; z.writestr(i, '/etc')"),
        ("device", "i = zipfile.ZipInfo('dev'); i.create_system = 3; i.external_attr = 0o020644 << 16; z.writestr(i, '')"),
        ("twice", "z.writestr('a', 'x'); z.writestr('a', 'y')"),
        ("encrypted", "i = zipfile.ZipInfo('a'); z.writestr(i, 'x'); z.filelist[0].flag_bits |= 1"),
        ("wrong checksum", "z.writestr('a', 'x'); z.filelist[0].CRC = 1"),
        ("wrong size", "z.writestr('a', 'x' * 1000); z.filelist[0].file_size = 10"),
        ("unknown packing", "z.writestr('a', 'x', zipfile.ZIP_LZMA)"),
        (
            "overlap",
            "z.writestr('a', 'x' * 1000); i = zipfile.ZipInfo('b'); i.__dict__ if False else None; import copy; c = copy.copy(z.filelist[0]); c.filename = 'b'; c.orig_filename = 'b'; z.filelist.append(c)",
        ),
    ] {
        zip(&workshop, "work/evil.zip", program);
        let before = workshop.everything();
        let error = workshop.fetch("evil.zip").await.expect_err(what);
        assert!(matches!(error.kind, ErrorKind::Denied | ErrorKind::InvalidInput), "{what}: {error}");
        assert_eq!(workshop.everything(), before, "{what}");
    }
    let sound = packed(&[file("a")]);
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("text", b"hello".to_vec()),
        ("cut off", sound[..sound.len() / 2].to_vec()),
        ("no zip", b"PK\x03\x04 and nothing".to_vec()),
    ] {
        workshop.write("work/broken.zip", bytes);
        let error = workshop.fetch("broken.zip").await.expect_err(what);
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{what}: {error}");
    }
    assert!(!workshop.has_scratch());
}

#[tokio::test]
async fn bombs_are_refused() {
    let workshop = Workshop::new();
    let zeros = vec![0; 1 << 20];
    let bomb = |megabytes: usize| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let mut header = tar::Header::new_ustar();
        header.set_path("zeros").unwrap();
        header.set_entry_type(EntryType::Regular);
        header.set_size((megabytes << 20) as u64);
        header.set_cksum();
        encoder.write_all(header.as_bytes()).unwrap();
        for _ in 0..megabytes {
            encoder.write_all(&zeros).unwrap();
        }
        encoder.write_all(&[0; 1024]).unwrap();
        encoder.finish().unwrap()
    };
    workshop.write("work/large.tar.gz", bomb(300));
    let many: Vec<Vec<u8>> = (0..10_001).map(|number| entry(&format!("f{number}"), EntryType::Regular, "", b"")).collect();
    workshop.write("work/many.tar.gz", packed(&many));
    zip(&workshop, "work/large.zip", "z.writestr('zeros', bytes(250 << 20))");
    for name in ["large.tar.gz", "many.tar.gz", "large.zip"] {
        let error = workshop.fetch(name).await.expect_err(name);
        assert_eq!(error.kind, ErrorKind::LimitExceeded, "{name}: {error}");
        assert!(!workshop.has_scratch(), "{name}");
    }
    workshop.write("work/dense.tar.gz", bomb(15));
    assert!(workshop.fetch("dense.tar.gz").await.is_ok(), "what is small may be packed as well as it will");
}
