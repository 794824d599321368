//! The bare processes.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
};

use crate::peer::Peer;

/// Starts a program, gives it `input` on stdin, reads what it prints, waits for its end.
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // A program that does not read is no fault.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let mut output = Vec::new();
    child.stdout.take().expect("stdout is a pipe").read_to_end(&mut output).expect("it prints");
    assert!(child.wait().expect("it ends").success(), "{program} failed");
}

/// A running `cat`: what comes in comes out.
pub(crate) fn cat() -> Peer {
    Peer::start(&mut Command::new("cat"))
}

/// Sends a line to `cat` and reads it back.
pub(crate) fn echo(cat: &mut Peer, line: &str) {
    cat.send(line);
    cat.receive();
}

/// Writes a few bytes so that they survive a crash.
pub(crate) fn durable_write(file: &mut File) {
    file.write_all(b"{\"a\": 1}\n").and_then(|()| file.sync_data()).expect("the file is written");
}

/// The interpreter behind any shim, which would be measured along.
pub(crate) fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}
