//! Turns an installer's output into a short cause and a fix.

use skillz_process::Exit;

use crate::{EnvironmentError, InstallRequest, Language};

/// Lines of the installer's output that are shown.
const SHOWN_LINES: usize = 15;

/// Words in the output, what they mean, and what to do. The first that fits counts.
const KNOWN: [(&[&str], &str, &str); 11] = [
    (
        &["No space left on device", "ENOSPC", "os error 28"],
        "The disk is full",
        "Free some space, for example by deleting the cache folder of Skillz, and try again",
    ),
    (
        &[
            "Temporary failure in name resolution",
            "Failed to establish a new connection",
            "dns error",
            "error sending request",
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ETIMEDOUT",
            "Network is unreachable",
            "Connection refused",
            "tunneling socket",
            "Could not connect",
            "Failed to fetch",
            "client error (Connect)",
            "Read timed out",
            "ECONNRESET",
        ],
        "The package index cannot be reached",
        "Look at the network of this machine; a proxy or an index of your own is taken from the server's environment (`HTTPS_PROXY`, `PIP_INDEX_URL`, `UV_INDEX_URL`, `NPM_CONFIG_REGISTRY`)",
    ),
    (
        &["CERTIFICATE_VERIFY_FAILED", "SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER_CERT", "invalid peer certificate"],
        "The package index's certificate is not trusted",
        "Give the server your certificate authority by `SSL_CERT_FILE`, `PIP_CERT` or `NODE_EXTRA_CA_CERTS`",
    ),
    (
        &["no usable wheels", "building from source is disabled", "has no wheels"],
        "A package is there as source only, which would run code while it is installed",
        "Choose a version or a package that comes as a wheel, or give the permission `install_scripts`",
    ),
    (
        &[
            "error: command 'gcc' failed",
            "unable to execute",
            "Microsoft Visual C++",
            "No such file or directory: 'gcc'",
            "No such file or directory: 'cc'",
            "command 'cc' failed",
            "No acceptable C compiler",
            "gyp ERR! find",
            "not found: make",
            "linker `cc` not found",
            "error: command '",
        ],
        "A package has to be compiled, and no compiler that does is there",
        "Install a compiler (for example `apt install build-essential python3-dev`), or choose a version that comes as a wheel",
    ),
    (
        &[
            "was not found in the package registry",
            "E404",
            "404 Not Found",
            "is not in this registry",
            "not found in the provided package locations",
        ],
        "There is no such package",
        "Look at the spelling of the name; what is imported and what is installed often differ (`import cv2` comes from `opencv-python`)",
    ),
    (
        &["there is no version of", "ETARGET", "notarget", "there are no versions of"],
        "There is no such version",
        "Ask for another version, or leave it out to get the newest",
    ),
    (
        &["conflicting dependencies", "ResolutionImpossible", "ERESOLVE", "depends on", "No solution found"],
        "The dependencies contradict each other",
        "Loosen the versions, or leave one of them out",
    ),
    (
        &["No matching distribution found"],
        "There is no such package or version, or it is there as source only",
        "Look at name and version; a package without wheels needs the permission `install_scripts`",
    ),
    (
        &["DO NOT MATCH THE HASHES", "hash mismatch", "Hash mismatch", "EINTEGRITY"],
        "A package is not the one that was locked",
        "If the change is meant, delete the tool and register it again, so that its versions are locked anew",
    ),
    (
        &["EBADENGINE", "requires a different Python", "Requires-Python"],
        "A package needs another version of the interpreter",
        "Ask for an older version of it",
    ),
];

/// The error for an installer that failed.
pub(crate) fn failure(request: &InstallRequest<'_>, exit: Exit, stdout: &str, stderr: &str) -> EnvironmentError {
    let output = if stderr.trim().is_empty() { stdout } else { stderr };
    let known = KNOWN.iter().find(|(words, _, _)| words.iter().any(|word| stderr.contains(word) || stdout.contains(word)));
    let ended = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::MemoryLimit => "too much memory".to_owned(),
        Exit::ProcessLimit => "too many processes".to_owned(),
    };
    let (cause, fix) = known.map_or_else(
        || (format!("The installer ended with {ended}"), "Its last lines say why".to_owned()),
        |(_, cause, fix)| ((*cause).to_owned(), (*fix).to_owned()),
    );
    EnvironmentError::Install {
        cause: format!("{cause} ({})", request.dependencies.join(", ")),
        fix,
        output: last_lines(request.language, output),
    }
}

/// The last lines that say something.
fn last_lines(language: Language, output: &str) -> String {
    let noise = |line: &str| {
        let line = line.trim();
        line.is_empty()
            || line.starts_with("WARNING: Running pip as the 'root' user")
            || language == Language::Node
                && (line.contains("A complete log of this run") || line.contains("_logs") || line == "npm error")
    };
    let lines: Vec<&str> = output.lines().filter(|line| !noise(line)).collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Program;

    #[test]
    fn causes_are_told_apart() {
        let program = Program { path: "/usr/bin/python3".into(), visible: Vec::new() };
        let dependencies = ["x".to_owned()];
        let request = InstallRequest {
            language: Language::Python,
            interpreter: &program,
            installer: None,
            dependencies: &dependencies,
            lock: None,
            install_scripts: false,
            base: Path::new("/"),
            progress: &|_| {},
        };
        for (output, part) in [
            ("ERROR: No matching distribution found for x==9", "no such package or version"),
            ("  cause: Because x was not found in the package registry and you require x", "There is no such package"),
            ("No solution found\n  cause: Because there is no version of x==99", "There is no such version"),
            ("ERROR: ResolutionImpossible: for help", "contradict"),
            ("No solution found\n Because a==1 depends on b>=2", "contradict"),
            ("Because all versions of x have no usable wheels", "as source only"),
            ("error: command 'gcc' failed: No such file or directory", "compiler"),
            ("OSError: [Errno 28] No space left on device", "disk is full"),
            ("npm error code ETARGET\nnpm error notarget No matching version found for x@99", "no such version"),
            ("npm error code E404\nnpm error 404 Not Found", "no such package"),
            ("npm error code EAI_AGAIN", "cannot be reached"),
            ("who knows", "ended with exit code 1"),
        ] {
            let error = failure(&request, Exit::Code(1), "", output);
            assert!(error.to_string().contains(part), "{output}: {error}");
            assert!(error.output().contains(output.lines().last().unwrap()), "{error:?}");
            assert!(error.fix().is_some());
        }
    }
}
