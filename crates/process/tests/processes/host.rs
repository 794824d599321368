//! A program may have a line to its host beside its standard streams.

use skillz_process::Exit;
use skillz_sandbox::{Policy, SandboxKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{launcher_with, shell};

#[tokio::test]
async fn a_program_talks_over_a_line_of_its_own() {
    for (sandbox, confined) in [(SandboxKind::None, false), (SandboxKind::Auto, true)] {
        let launcher = launcher_with(sandbox);
        let mut command = shell("exec /usr/bin/python3 -c 'import os; os.write(65, os.read(64, 9).upper()); print(input())'");
        command.policy = confined.then(Policy::default);
        let mut child = launcher.spawn_with_host(command).await.expect("starts");
        child.stdin.take().expect("is there").write_all(b"input\n").await.expect("is taken");
        let mut host = child.host.take().expect("was asked for");
        host.input.write_all(b"hello").await.expect("is taken");
        let (mut said, mut printed) = (String::new(), String::new());
        host.output.read_to_string(&mut said).await.expect("is text");
        child.stdout.take().expect("is there").read_to_string(&mut printed).await.expect("is text");
        assert_eq!((said.as_str(), printed.as_str()), ("HELLO", "input\n"), "confined: {confined}");
        assert_eq!(child.wait().await.expect("ends"), Exit::Code(0));
    }
}
