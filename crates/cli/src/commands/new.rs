//! `skillz new NAME --lang python`: a folder with a small working tool, to be edited and then built.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use skillz_json::{Value, json};
use skillz_tool::{Example, Manifest, ToolKind, ToolName};

use crate::{
    context::Context,
    report::{Failure, Status},
};

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The tool's name.
    name: String,
    /// The language it is written in.
    #[arg(long, value_enum)]
    lang: Language,
    /// Where its folder goes; the current folder by default.
    #[arg(long = "in", value_name = "FOLDER", default_value = ".")]
    parent: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Language {
    #[value(alias = "rs")]
    Rust,
    #[value(alias = "py")]
    Python,
    #[value(alias = "js")]
    Javascript,
    #[value(alias = "ts")]
    Typescript,
    #[value(alias = "sh")]
    Bash,
    Ruby,
    Perl,
    Php,
    Lua,
}

/// What a language's tool starts from.
struct Template {
    file: &'static str,
    text: &'static str,
    /// `None` for Rust, which is compiled.
    interpreter: Option<&'static str>,
}

impl Language {
    fn template(self) -> Template {
        let script = |file, text, interpreter| Template { file, text, interpreter: Some(interpreter) };
        match self {
            Self::Rust => Template { file: "src.rs", text: include_str!("../../templates/src.rs"), interpreter: None },
            Self::Python => script("main.py", include_str!("../../templates/main.py"), "python3"),
            Self::Javascript => script("main.mjs", include_str!("../../templates/main.mjs"), "node"),
            Self::Typescript => script("main.ts", include_str!("../../templates/main.ts"), "node"),
            Self::Bash => script("main.sh", include_str!("../../templates/main.sh"), "bash"),
            Self::Ruby => script("main.rb", include_str!("../../templates/main.rb"), "ruby"),
            Self::Perl => script("main.pl", include_str!("../../templates/main.pl"), "perl"),
            Self::Php => script("main.php", include_str!("../../templates/main.php"), "php"),
            Self::Lua => script("main.lua", include_str!("../../templates/main.lua"), "lua"),
        }
    }
}

pub(crate) fn run(arguments: &NewArguments, context: &Context) -> anyhow::Result<()> {
    let name = ToolName::for_new(&arguments.name).map_err(|error| Failure::wrong_use(error.to_string()))?;
    let folder = arguments.parent.join(name.as_str());
    match fs::create_dir(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::new(Status::Refused, format!("`{}` is there already", folder.display())).into());
        }
        Err(error) => return Err(error).with_context(|| format!("The folder `{}` cannot be made", folder.display())),
    }
    let template = arguments.lang.template();
    write(&folder, template.file, template.text)?;
    write(&folder, "manifest.json", &format!("{:#}\n", skillz_json::to_value(manifest(&name, &template))?))?;

    let made = json!({"name": name, "folder": folder, "files": ["manifest.json", template.file]});
    Ok(context.printer.print(&made, |_| {
        let folder = folder.display();
        format!("Made {folder}/manifest.json and {folder}/{}.\nEdit them, then run: skillz build {folder}", template.file)
    })?)
}

fn manifest(name: &ToolName, template: &Template) -> Manifest {
    let kind = if template.interpreter.is_some() { ToolKind::Script } else { ToolKind::Wasm };
    let mut manifest = Manifest::new(name.as_str(), "Counts the words of a text.", kind);
    manifest.interpreter = template.interpreter.map(str::to_owned);
    manifest.entry_file = Some(template.file.to_owned());
    // The signature of a function tells it; a schema given here would not follow the code.
    if !matches!(template.file, "main.py" | "main.mjs" | "main.ts" | "src.rs") {
        manifest.input_schema = Some(json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The text to count in"},
                "limit": {"type": "integer", "description": "How many of its words to look at"},
            },
            "required": ["text"],
        }));
    }
    let arguments = [("text".to_owned(), Value::from("one two three"))];
    manifest.examples =
        vec![Example { arguments: arguments.into_iter().collect(), result: Some(json!({"words": 3})), ..Example::default() }];
    manifest
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("`{}` cannot be written", path.display()))
}
