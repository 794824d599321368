//! Log lines go to stderr, since stdout belongs to the protocol.

use std::io::{self, Write};

use skillz_config::{LogFormat, Settings};
use tracing_subscriber::{Layer, filter::Targets, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

/// What other people's crates may say unless the filter names them: rmcp reports every disconnect of a client as an
/// error of its service, and calls each request by name.
const MUTED: &[(&str, tracing_subscriber::filter::LevelFilter)] = &[
    ("rmcp", tracing_subscriber::filter::LevelFilter::ERROR),
    ("rmcp::service", tracing_subscriber::filter::LevelFilter::OFF),
    ("rmcp::transport", tracing_subscriber::filter::LevelFilter::OFF),
    ("cranelift", tracing_subscriber::filter::LevelFilter::WARN),
    ("wasmtime", tracing_subscriber::filter::LevelFilter::WARN),
    ("hyper", tracing_subscriber::filter::LevelFilter::WARN),
    ("notify", tracing_subscriber::filter::LevelFilter::WARN),
];

/// Starts logging. Gives a sentence if the filter makes no sense.
pub(crate) fn start(settings: &Settings) -> Result<(), String> {
    let filter = filter(&settings.log)?;
    // An error while writing a log line must not lead to another line: the library would report it on stderr again.
    let lines = tracing_subscriber::fmt::layer().with_writer(Stderr).with_ansi(false).log_internal_errors(false);
    let lines = match settings.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().map_err(|error| error.to_string())
}

fn filter(text: &str) -> Result<Targets, String> {
    let given: Targets = text.parse().map_err(|error| {
        format!("The log filter `{text}` makes no sense ({error}); write a level such as `info`, or `skillz_engine=debug,warn`")
    })?;
    let named: Vec<String> = given.iter().map(|(target, _)| target.to_owned()).collect();
    let muted = MUTED.iter().filter(|(target, _)| !named.iter().any(|name| name == target));
    Ok(given.with_targets(muted.map(|(target, level)| (*target, *level))))
}

/// stderr, which may be closed: then log lines are lost and nothing else happens.
struct Stderr;

impl MakeWriter<'_> for Stderr {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn noisy_crates_are_muted_unless_named() {
        let quiet = filter("debug").expect("a level");
        assert!(quiet.would_enable("skillz_engine::call", &Level::DEBUG));
        assert!(!quiet.would_enable("rmcp::service", &Level::ERROR));
        assert!(!quiet.would_enable("rmcp::transport", &Level::INFO));
        let loud = filter("rmcp::service=trace").expect("a target");
        assert!(loud.would_enable("rmcp::service", &Level::TRACE));
        assert!(filter("a=b=c").is_err());
    }
}
