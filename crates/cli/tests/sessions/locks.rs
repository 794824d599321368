//! A tool that is imported elsewhere gets the packages that it was made with, whatever has come out since.

use std::{fs, process::Command};

use serde_json::json;
use skillz_test_support::{Home, Run};

use crate::skillz;

/// Makes a wheel of the package `skillz_probe` in a folder.
fn make_wheel(folder: &std::path::Path, version: &str) {
    let program = format!(
        "import sys, zipfile\n\
         name, version = 'skillz_probe', '{version}'\n\
         info = f'{{name}}-{{version}}.dist-info'\n\
         z = zipfile.ZipFile(f'{{sys.argv[1]}}/{{name}}-{{version}}-py3-none-any.whl', 'w')\n\
         z.writestr(f'{{name}}.py', f'VERSION = {{version!r}}\\n')\n\
         z.writestr(f'{{info}}/METADATA', f'Metadata-Version: 2.1\\nName: {{name}}\\nVersion: {{version}}\\n')\n\
         z.writestr(f'{{info}}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
         z.writestr(f'{{info}}/RECORD', f'{{name}}.py,,\\n{{info}}/METADATA,,\\n{{info}}/WHEEL,,\\n{{info}}/RECORD,,\\n')\n\
         z.close()\n"
    );
    let status = Command::new("python3").args(["-c", &program]).arg(folder).status().expect("python3 starts");
    assert!(status.success());
}

#[test]
fn an_import_installs_what_the_lock_names() {
    let (here, there) = (Home::new(), Home::new());
    let wheels = here.root().join("wheels");
    fs::create_dir(&wheels).expect("a folder");
    make_wheel(&wheels, "1.0");
    let shown = wheels.display().to_string();
    let run = |home: &Home, arguments: &[&str]| {
        let run = Run::new(skillz(), home).arguments(arguments).variable("PIP_NO_INDEX", "1").variable("PIP_FIND_LINKS", &shown);
        let (code, stdout, stderr) = run.output();
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    };
    let folder = here.workspace().join("probe");
    fs::create_dir(&folder).expect("a folder");
    let manifest = json!({
        "name": "probe", "description": "Tells a version.", "tool_type": "script", "interpreter": "python3", "entry_file": "main.py",
        "dependencies": ["skillz_probe>=1"],
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a manifest");
    fs::write(folder.join("main.py"), "import skillz_probe\n\ndef run() -> str:\n    return skillz_probe.VERSION\n")
        .expect("a source");
    run(&here, &["build", "probe"]);
    let archive = there.workspace().join("probe.tar.gz").display().to_string();
    run(&here, &["export", "probe", "--to", &archive]);
    make_wheel(&wheels, "2.0");
    run(&there, &["import", "probe.tar.gz"]);
    assert_eq!(run(&there, &["call", "probe"]), "1.0\n");
    let lock = |home: &Home| fs::read_to_string(home.tools().join("probe/lock")).expect("a lock");
    assert_eq!(lock(&there), lock(&here));
}
