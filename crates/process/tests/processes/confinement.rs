//! What a confined process can and cannot do, as root's and as a plain user's.

use std::{
    fs,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{MetadataExt, PermissionsExt, chown, symlink},
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use skillz_sandbox::{Policy, SandboxKind};
use tempfile::TempDir;

use crate::{
    server::{PLAIN_USER, Server},
    support::{command, descendants, launcher_with, name_of, output, output_and_exit, shell, until},
};

const PROBE: &str = include_str!("probe.py");

/// A server, and folders of its user for it to show and to hide.
struct Host {
    server: Server,
    sandbox: SandboxKind,
    user: u32,
    /// What the others are in.
    folder: TempDir,
    tcp: TcpListener,
    /// Keeps listening.
    _abstract_socket: UnixListener,
}

impl Host {
    fn all() -> [Self; 2] {
        [Self::new(Server::start(), rustix::process::geteuid().as_raw()), Self::plain()]
    }

    fn plain() -> Self {
        let own = rustix::process::geteuid();
        Self::new(Server::start_as_plain_user(), if own.is_root() { PLAIN_USER } else { own.as_raw() })
    }

    fn new(server: Server, user: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["private", "shown", "open", "open/inner"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        for (name, text) in [("private/secret", "secret"), ("shown/file", "shown\n"), ("open/there", "there"), ("loose", "loose")]
        {
            fs::write(folder.path().join(name), text).expect("written");
            // Only the owner may: so the confined process must act as the owner.
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o600)).expect("closed");
        }
        symlink(folder.path().join("private"), folder.path().join("open/link")).expect("linked");
        for name in ["", "private", "private/secret", "shown", "shown/file", "open", "open/inner", "open/there", "loose"] {
            chown(folder.path().join(name), Some(user), Some(user)).expect("given");
        }
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let name = format!("process-test-{}", tcp.local_addr().expect("bound").port());
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        Self {
            server,
            sandbox: SandboxKind::Builtin,
            user,
            folder,
            tcp,
            _abstract_socket: UnixListener::bind_addr(&address).expect("bound"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn probe(&mut self, policy: &Policy) -> Value {
        let port = self.tcp.local_addr().expect("bound").port();
        let paths = ["private", "shown", "open", "loose"].map(|name| self.path(name).display().to_string());
        let [private, shown, open, loose] = &paths;
        let arguments = format!("{port} {} {private} {shown} {open} {loose}", std::process::id());
        let script = format!("/usr/bin/python3 - {arguments} <<'END'\n{PROBE}\nEND");
        let (exit, output) = self.server.run(self.sandbox, &script, &json!({"policy": policy}));
        assert_eq!(exit, "Code(0)", "{output}");
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }
}

/// What nobody may, whatever was granted.
const NEVER: &[&str] = &[
    "write /usr",
    "write /etc",
    "write /",
    "write /var",
    "write /opt",
    "write /dev",
    "write /proc/sys/kernel",
    "write /run",
    "write /bin",
    "write core_pattern",
    "shadow",
    "private file",
    "private folder",
    "host temporary file",
    "homes",
    "host process",
    "host process list",
    "environment of the first process",
    "memory of the first process",
    "vsock",
    "raw socket",
    "mount",
    "unshare user",
    "clone user",
    "chroot",
    "become root",
    "ptrace",
    "device",
    "new terminal session",
    "read-only: write",
    "writable: out by a link",
];

/// What everybody may.
const ALWAYS: &[&str] = &[
    "temporary file",
    "shared memory",
    "null",
    "random",
    "stderr by name",
    "own loopback",
    "pseudo-terminal",
    "child",
    "cpu count",
];

fn check(found: &Value, names: &[&str], expected: &str, host: &Host) {
    for name in names {
        assert_eq!(found[*name], expected, "{name}, as user {}: {found:#}", host.user);
    }
}

#[test]
fn nothing_is_granted_by_itself() {
    for mut host in Host::all() {
        let found = host.probe(&Policy::default());
        check(&found, NEVER, "no", &host);
        check(&found, ALWAYS, "yes", &host);
        let ungranted = ["host tcp", "host abstract socket", "read-only: read", "writable: write", "writable: change"];
        check(&found, &ungranted, "no", &host);
        assert_eq!(found["kill the first process"], "ignored");
        // Its first process, the shell and itself.
        assert_eq!(found["processes"], 3, "{found:#}");
        assert_eq!(found["environment"], json!(["LC_CTYPE", "PATH", "PWD", "SHLVL", "_"]), "the shell's and Python's own");
        let none = "0000000000000000";
        assert_eq!(found["capabilities"], json!([none, none, none]));
        assert_eq!((&found["new privileges"], &found["filter"]), (&json!("1"), &json!("2")));
        assert_eq!(found["host name"], "sandbox");
    }
}

#[test]
fn what_is_granted_is_there() {
    for mut host in Host::all() {
        let policy = Policy { read_only: vec![host.path("shown")], read_write: vec![host.path("open")], network: true };
        let found = host.probe(&policy);
        check(&found, NEVER, "no", &host);
        check(&found, ALWAYS, "yes", &host);
        check(&found, &["host tcp", "read-only: read", "writable: write", "writable: change"], "yes", &host);
        // Abstract sockets go with the network, unless Landlock keeps them apart.
        let report = host.server.ask(&json!({"do": "probe", "sandbox": "builtin"}));
        let apart = report["landlock_abi"].as_u64() >= Some(6);
        check(&found, &["host abstract socket"], if apart { "no" } else { "yes" }, &host);
        // What was made belongs to the folder's owner, not to whom the sandbox runs as.
        let made = fs::metadata(host.path("open/made")).expect("it was made");
        assert_eq!((made.uid(), made.gid()), (host.user, host.user));
        assert_eq!(fs::read_to_string(host.path("open/there")).expect("it is ours"), "theremore");
        assert!(!host.path("shown/new").exists());
    }
}

#[test]
fn folders_of_other_users_can_be_granted_by_root() {
    if !rustix::process::geteuid().is_root() {
        // Only root can act for others; as another user this is the test above.
        return what_is_granted_is_there();
    }
    let mut host = Host::new(Server::start(), PLAIN_USER);
    let policy = Policy { read_only: vec![host.path("shown")], read_write: vec![host.path("open")], network: false };
    let found = host.probe(&policy);
    check(&found, NEVER, "no", &host);
    check(&found, &["read-only: read", "writable: write", "writable: change"], "yes", &host);
    assert_eq!(fs::metadata(host.path("open/made")).expect("it was made").uid(), PLAIN_USER);
}

#[test]
fn file_systems_that_cannot_change_owners_can_be_granted_by_root() {
    if !rustix::process::geteuid().is_root() {
        // Owners are changed for root's processes only; as another user this is the test above.
        return what_is_granted_is_there();
    }
    let mut host = Host::new(Server::start(), 0);
    let ramfs = "cp -a \"$1\" \"$1.copy\" && mount -t ramfs none \"$1\" && cp -a \"$1.copy/.\" \"$1\"";
    host.server = Server::start_with_mounts(ramfs, &host.path("open"));
    let found = host.probe(&Policy { read_write: vec![host.path("open")], ..Policy::default() });
    let never: Vec<&str> = NEVER.iter().copied().filter(|name| *name != "become root").collect();
    check(&found, &never, "no", &host);
    check(&found, &["writable: write", "writable: change"], "yes", &host);
    assert_eq!(found["become root"], "is root", "but without any right: {found:#}");
    assert_eq!(found["capabilities"], json!(["0000000000000000", "0000000000000000", "0000000000000000"]));
}

#[tokio::test]
async fn grants_inside_grants_keep_their_own_rights() {
    let launcher = launcher_with(SandboxKind::Builtin);
    let host = Host::plain();
    fs::write(host.path("open/inner/file"), "inner").expect("written");
    let mut command = shell("touch new inner/new; cat inner/file; ls -A");
    command.directory = host.path("open");
    command.policy =
        Some(Policy { read_only: vec![host.path("open/inner")], read_write: vec![host.path("open")], ..Policy::default() });
    let printed = output(&launcher, command).await;
    assert!(printed.starts_with("innerinner\nlink\nnew\nthere\n"), "{printed}");
    assert!(printed.contains("inner/new") && printed.contains("Read-only"), "{printed}");
}

#[tokio::test]
async fn tools_in_a_home_are_reached_through_empty_folders() {
    let launcher = launcher_with(SandboxKind::Builtin);
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path().canonicalize().expect("it is there");
    fs::create_dir_all(home.join(".versions/1.2/bin")).expect("made");
    fs::copy("/bin/echo", home.join(".versions/1.2/bin/tool")).expect("copied");
    fs::write(home.join("secret"), "").expect("written");
    symlink(home.join(".versions/1.2"), home.join("current")).expect("linked");
    let mut command = shell("$HOME/current/bin/tool works; ls -A $HOME $HOME/.versions; touch $HOME/current/x");
    command.environment.push(("HOME".into(), home.clone().into()));
    let mut policy = Policy::default();
    policy.allow_reading(&home.join("current"));
    policy.allow_reading(&home.join("missing"));
    command.policy = Some(policy);
    let printed = output(&launcher, command).await;
    let expected = format!("works\n{0}:\n.versions\ncurrent\n\n{0}/.versions:\n1.2\n", home.display());
    assert!(printed.starts_with(&expected), "{printed}");
    assert!(printed.contains("Read-only file system"), "{printed}");
}

#[test]
fn changes_of_the_system_are_seen_and_containers_will_do() {
    let etc = tempfile::tempdir().expect("a folder");
    fs::copy("/etc/nsswitch.conf", etc.path().join("nsswitch.conf")).expect("copied");
    let mut server = Server::start_in_container("mount --bind \"$1\" /etc", etc.path());
    let look = |server: &mut Server| {
        let script = "ls /etc /.. | tr '\\n' ' '; cut -d' ' -f5 /proc/self/mountinfo | sort | uniq -d; head -c 1 /etc/shadow";
        server.run(SandboxKind::Builtin, script, &json!({}))
    };
    let root = "/..:\nbin\ndev\netc\n".replace('\n', " ");
    let (exit, before) = look(&mut server);
    assert_eq!(exit, "Code(1)", "{before}");
    assert!(before.starts_with("/..: ") && before.contains("/etc: group hosts nsswitch.conf passwd"), "{before}");
    assert!(before.starts_with(&root), "{before}");
    // The next supervisor has been prepared already, and has to notice.
    fs::create_dir(etc.path().join("python9.9")).expect("made");
    let after = look(&mut server).1;
    assert_eq!(after, before.replace("passwd ", "passwd python9.9 "));
}

#[tokio::test]
async fn what_cannot_be_shown_is_told() {
    let launcher = launcher_with(SandboxKind::Builtin);
    let host = Host::plain();
    let refusal = async |policy: Policy, directory: &Path| {
        let mut command = shell("true");
        command.policy = Some(policy);
        command.directory = directory.to_owned();
        output_and_exit(&launcher, command).await.expect_err("it is refused").to_string()
    };
    let writable = |path: PathBuf| Policy { read_write: vec![path], ..Policy::default() };
    let missing = refusal(writable(host.path("missing")), Path::new("/")).await;
    assert!(missing.contains("missing") && missing.contains("must be there"), "{missing}");
    let link = refusal(writable(host.path("open/link")), Path::new("/")).await;
    assert!(link.contains("symbolic link") && link.contains("private"), "{link}");
    let unseen = refusal(Policy::default(), &host.path("open")).await;
    assert!(unseen.contains("working folder") && unseen.contains("the sandbox does not show it"), "{unseen}");
    let mut hidden = command(&host.path("tool"), &[]);
    fs::copy("/bin/true", host.path("tool")).expect("copied");
    hidden.policy = Some(Policy::default());
    let hidden = launcher.spawn(hidden).await.expect_err("it is hidden").to_string();
    assert!(hidden.contains("the sandbox does not show it"), "{hidden}");
}

#[test]
fn a_system_without_namespaces_is_told_with_the_ways_out() {
    let mut server = Server::start_in_container("echo 0 > /proc/sys/user/max_user_namespaces", Path::new("/"));
    for _ in 0..2 {
        let (exit, error) = server.run(SandboxKind::Builtin, "true", &json!({}));
        assert_eq!(exit, "not started");
        for part in ["make namespaces", "sysctl user.max_user_namespaces", "SKILLZ_SANDBOX=none", "unconfined"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let report = server.ask(&json!({"do": "probe", "sandbox": "builtin"}));
    assert_eq!((&report["available"], &report["confined"]), (&json!(false), &json!(false)), "{report}");
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("Two ways out")), "{report}");
    let (exit, output) = server.run(SandboxKind::None, "echo open", &json!({}));
    assert_eq!((exit.as_str(), output.as_str()), ("Code(0)", "open\n"));
    // A helper that cannot fork must still notice that its server has gone, and not try for ever.
    let started = descendants(u32::try_from(server.pid()).expect("a pid"));
    server.kill();
    until("the helper has ended", || started.iter().all(|pid| name_of(*pid) != "tool-launcher"));
}

#[tokio::test]
async fn unconfined_commands_see_the_host() {
    for (sandbox, policy) in [(SandboxKind::None, Some(Policy::default())), (SandboxKind::Builtin, None)] {
        let mut command = shell(&format!("ls -d /proc/{}", std::process::id()));
        command.policy = policy;
        let (printed, exit) = output_and_exit(&launcher_with(sandbox), command).await.expect("it runs");
        assert!(exit.success(), "{sandbox:?}: {printed}");
    }
}

#[tokio::test]
async fn sandboxes_that_are_missing_name_the_others() {
    for sandbox in [SandboxKind::Firejail, SandboxKind::Nsjail] {
        let launcher = launcher_with(sandbox);
        let mut command = shell("true");
        command.policy = Some(Policy::default());
        let error = launcher.spawn(command).await.expect_err("it is not there").to_string();
        assert!(error.contains(sandbox.name()) && error.contains("SKILLZ_SANDBOX=builtin"), "{error}");
        assert!(!launcher.probe().await.available);
    }
}

#[test]
fn bubblewrap_shows_and_hides_the_same() {
    for mut host in Host::all() {
        host.sandbox = SandboxKind::Bubblewrap;
        let report = host.server.ask(&json!({"do": "probe", "sandbox": "bubblewrap"}));
        if report["available"] == false {
            // Without the program, the answer says how to get it; with it, all below must hold.
            assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("apt install bubblewrap")), "{report}");
            continue;
        }
        // Its first process is not kept from looking at itself, and it knows no terminal but its own.
        let softer = ["environment of the first process", "memory of the first process", "new terminal session"];
        let never: Vec<&str> = NEVER.iter().copied().filter(|name| !softer.contains(name)).collect();
        let always: Vec<&str> = ALWAYS.iter().copied().filter(|name| *name != "stderr by name").collect();
        let found = host.probe(&Policy::default());
        check(&found, &never, "no", &host);
        check(&found, &always, "yes", &host);
        check(&found, &["host tcp", "host abstract socket", "read-only: read", "writable: write"], "no", &host);
        assert_eq!(found["environment"], json!(["LC_CTYPE", "PATH", "PWD", "SHLVL", "_"]));
        let policy = Policy { read_only: vec![host.path("shown")], read_write: vec![host.path("open")], network: true };
        let found = host.probe(&policy);
        check(&found, &never, "no", &host);
        check(&found, &["host tcp", "read-only: read", "writable: write", "writable: change"], "yes", &host);
    }
}
