//! What a confined process can and cannot do.

use skillz_sandbox::{Policy, SandboxKind};

use crate::support::{launcher_with, output, shell};

#[tokio::test]
async fn first_look() {
    let launcher = launcher_with(SandboxKind::Auto);
    eprintln!("{:?}", launcher.probe().await);
    let mut command = shell(
        "id; ls -la / /etc /dev /tmp; cat /proc/self/mountinfo; ls /proc; cat /etc/shadow; cat /proc/self/status; \
         echo hi > /dev/stderr; ls -la /root; touch /usr/x /x; cat /proc/1/environ; ip a; env; mount -t tmpfs x /tmp; unshare -U true; ls -la /proc/1/fd",
    );
    command.policy = Some(Policy::default());
    eprintln!("{}", output(&launcher, command).await);
}
