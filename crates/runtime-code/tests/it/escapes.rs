//! Attempts to get out of the embedded interpreters: each fails with a message, and the runner goes on.

use skillz_json::json;
use skillz_runtime_code::Language;

use crate::support::{Bench, Options};

#[tokio::test]
async fn python_has_no_files_no_environment_no_processes() {
    let bench = Bench::new();
    bench
        .check_failures(
            &Options::default(),
            &[
                ("open('/etc/passwd').read()", "PermissionError"),
                ("open('/tmp/x', 'w').write('a')", "PermissionError"),
                ("from pathlib import Path\nPath('/etc/passwd').read_text()", "PermissionError"),
                ("from pathlib import Path\nlist(Path('/').iterdir())", "PermissionError"),
                ("from pathlib import Path\nPath('/etc/passwd').exists()", "PermissionError"),
                ("import os\nos.getenv('HOME')", "PermissionError"),
                ("import os\nos.environ['PATH']", "PermissionError"),
                ("import os\nos.system('id')", "AttributeError"),
                ("import subprocess\nsubprocess.run(['id'])", "ModuleNotFoundError"),
                ("import socket\nsocket.create_connection(('127.0.0.1', 80))", "ModuleNotFoundError"),
                ("import urllib.request\nurllib.request.urlopen('http://169.254.169.254')", "ModuleNotFoundError"),
                ("import ctypes", "ModuleNotFoundError"),
                ("__import__('os').system('id')", "NameError"),
                ("eval('1')", "NameError"),
                ("exec('x = 1')", "NameError"),
                ("().__class__.__bases__[0].__subclasses__()", "AttributeError"),
                ("(lambda: 0).__globals__", "AttributeError"),
                ("word_count.__globals__", "AttributeError"),
                ("[].__class__.__mro__", "AttributeError"),
                ("getattr(call, '__code__')", "AttributeError"),
                ("import sys\nsys.modules['os']", "AttributeError"),
                ("'{0.__class__.__init__.__globals__}'.format(call)", "Error"),
            ],
        )
        .await;
    bench.check(&Options::default(), &[("1", json!(1))]).await;
}

#[tokio::test]
async fn javascript_has_the_language_only() {
    let bench = Bench::new();
    let options = Options { language: Language::JavaScript, ..Options::default() };
    bench
        .check_failures(
            &options,
            &[
                ("(new Function('return process'))()", "process is not defined"),
                ("[].constructor.constructor('return process.env')()", "process is not defined"),
                ("this.constructor.constructor('return require(\"fs\")')()", ""),
                ("(async () => {}).constructor('return await import(\"fs\")')()", ""),
                ("globalThis.process.env", "TypeError"),
                ("globalThis.require('fs')", "TypeError"),
                ("await (0, eval)('import(\"std\")')", ""),
                ("globalThis.std.open('/etc/passwd')", "TypeError"),
                ("globalThis.os.exec(['id'])", "TypeError"),
                ("new Worker('x')", "Worker is not defined"),
                ("await fetch('http://127.0.0.1')", "fetch is not defined"),
                ("call.constructor('return this')().process.exit()", "TypeError"),
            ],
        )
        .await;
    bench
        .check(
            &options,
            &[
                (
                    "typeof globalThis.process + typeof globalThis.require + typeof globalThis.Deno",
                    json!("undefinedundefinedundefined"),
                ),
                ("Object.getOwnPropertyNames(globalThis).filter((n) => /native|bridge|host|fs|net|sock/i.test(n))", json!([])),
            ],
        )
        .await;
}

/// What limits a worker's system calls cannot be had: nothing runs.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_that_cannot_confine_itself_does_not_run() {
    use std::os::unix::fs::PermissionsExt;
    // A filter of three instructions refuses `seccomp`, and the worker is started behind it.
    let number = if cfg!(target_arch = "x86_64") { 317 } else { 277 };
    let refusing = format!(
        "import ctypes, os, struct, sys\n\
         code = struct.pack('=' + 'HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, {number}, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7fff0000)\n\
         buffer = ctypes.create_string_buffer(code)\n\
         class Program(ctypes.Structure):\n    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]\n\
         program = Program(4, ctypes.addressof(buffer))\n\
         libc = ctypes.CDLL(None)\n\
         assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0\n\
         os.execv(sys.argv[1], sys.argv[1:])\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (script, starter) = (folder.path().join("refusing.py"), folder.path().join("starter"));
    let binary = std::env::current_exe().expect("this binary");
    std::fs::write(&script, refusing).expect("written");
    let text = format!("#!/bin/sh\nexec /usr/bin/env -i /usr/bin/python3 {} {} \"$@\"\n", script.display(), binary.display());
    std::fs::write(&starter, text).expect("written");
    std::fs::set_permissions(&starter, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let bench = Bench::with_worker(starter);
    for language in [Language::Python, Language::JavaScript] {
        let failure = bench.run_with("1", &Options { language, ..Options::default() }).await.expect_err("unconfined");
        assert_eq!(failure.error.kind, skillz_tool::ErrorKind::Unavailable);
        assert!(failure.error.text().contains("system calls could not be limited"), "{}", failure.error);
    }
}
