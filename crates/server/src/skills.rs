//! Imported knowledge skills, as prompts, as resources, and for the extension of the protocol that is about them.
//!
//! They are read from disk each time: there are few, they are small, and whoever puts one into the folder by hand or
//! through another server sees it at once.

use rmcp::model::{
    GetPromptResult, Prompt, PromptMessage, Resource, Role, Skill as McpSkill, SkillFrontmatter, SkillResource, SkillResources,
};
use skillz_engine::{Engine, Skill};
use skillz_json::wire;
use skillz_tool::{ErrorKind, ToolError};

use crate::{read, resources};

/// Longest text of a skill that goes into a prompt, in bytes; the resource has all of it.
const PROMPT_SIZE: usize = 200_000;
/// Files of a skill that its prompt names.
const NAMED_FILES: usize = 100;

/// All skills, sorted by name.
pub(crate) async fn all(engine: &Engine) -> Vec<Skill> {
    let shelf = engine.skills().clone();
    tokio::task::spawn_blocking(move || shelf.list()).await.unwrap_or_default()
}

/// A skill by its name.
pub(crate) async fn find(engine: &Engine, name: &str) -> Option<Skill> {
    let (shelf, name) = (engine.skills().clone(), name.to_owned());
    tokio::task::spawn_blocking(move || shelf.get(&name)).await.ok().flatten()
}

/// A skill as a prompt.
pub(crate) fn prompt(skill: &Skill) -> Prompt {
    Prompt::new(skill.name.clone(), Some(skill.description.clone()), None)
}

/// A skill as a resource: its `SKILL.md`.
pub(crate) fn resource(skill: &Skill) -> Resource {
    Resource::new(resources::skill_uri(&skill.name, resources::SKILL_FILE), skill.name.clone())
        .with_description(skill.description.clone())
        .with_mime_type(resources::MARKDOWN)
}

/// The text of a skill, for the model, with the addresses of its other files.
pub(crate) async fn filled_prompt(skill: &Skill) -> Result<GetPromptResult, ToolError> {
    let read = skill.clone();
    let text = tokio::task::spawn_blocking(move || read.instructions()).await.map_err(ToolError::internal)?;
    let text = text.map_err(|error| ToolError::internal(format!("The skill `{}` cannot be read: {error}", skill.name)))?;
    let mut text = text.trim().to_owned();
    let uri = |file: &str| resources::skill_uri(&skill.name, file);
    if text.len() > PROMPT_SIZE {
        text.truncate(text.floor_char_boundary(PROMPT_SIZE));
        text.push_str(&format!("\n\n(The text goes on; all of it is in {})", uri(resources::SKILL_FILE)));
    }
    let files = read::files(&skill.directory).await;
    let others: Vec<&String> = files.iter().filter(|file| *file != resources::SKILL_FILE).collect();
    if !others.is_empty() {
        text.push_str("\n\nFiles of this skill, as resources:\n");
        others.iter().take(NAMED_FILES).for_each(|file| text.push_str(&format!("- {}\n", uri(file))));
        if others.len() > NAMED_FILES {
            text.push_str(&format!("- and {} more\n", others.len() - NAMED_FILES));
        }
    }
    let message = PromptMessage::new_text(Role::User, text.trim_end().to_owned());
    Ok(GetPromptResult::new(vec![message]).with_description(skill.description.clone()))
}

/// A skill with the digests of its files, as the extension describes it.
pub(crate) async fn manifest(skill: &Skill) -> Result<McpSkill, ToolError> {
    let mut files = Vec::new();
    for file in read::files(&skill.directory).await {
        let bytes = tokio::fs::read(skill.directory.join(&file)).await;
        let bytes =
            bytes.map_err(|error| ToolError::internal(format!("`{file}` of `{}` cannot be read: {error}", skill.name)))?;
        files.push(SkillResource::from_bytes(resources::skill_uri(&skill.name, &file), &bytes));
    }
    let mut frontmatter = SkillFrontmatter::new(skill.name.clone(), skill.description.clone());
    for (field, value) in skill.fields.iter().filter(|(field, _)| !matches!(field.as_str(), "name" | "description")) {
        frontmatter = frontmatter.with_field(field.clone(), wire::enter(value.clone()));
    }
    Ok(McpSkill::new(resources::skill_uri(&skill.name, resources::SKILL_FILE), frontmatter, SkillResources::Files(files)))
}

/// The skill whose `SKILL.md` has that address.
pub(crate) async fn by_uri(engine: &Engine, uri: &str) -> Result<Skill, ToolError> {
    let missing = || {
        let shown: String = uri.chars().take(200).collect();
        ToolError::new(ErrorKind::NotFound, format!("There is no skill at `{shown}`"))
    };
    let Some(resources::Address::Skill { name, path }) = resources::Address::parse(uri) else { return Err(missing()) };
    if path != resources::SKILL_FILE {
        return Err(missing());
    }
    find(engine, &name).await.ok_or_else(missing)
}
