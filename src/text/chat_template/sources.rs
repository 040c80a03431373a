//! The chat templates of one model by name.

/// The templates that the files of a model have. Most have one, called `default`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatTemplates {
    /// Names and strings, none of the names twice.
    named: Vec<(Box<str>, Box<str>)>,
}

/// The template for conversations without tools, and with tools if there is no other.
const DEFAULT: &str = "default";
/// The template for conversations with tools.
const TOOL_USE: &str = "tool_use";

impl ChatTemplates {
    /// One template for every conversation.
    pub fn one(text: &str) -> ChatTemplates {
        let mut templates = ChatTemplates::default();
        templates.add(DEFAULT, text);
        templates
    }

    /// Adds a template, unless there is one of this name.
    pub fn add(&mut self, name: &str, text: &str) {
        if self.get(name).is_none() {
            self.named.push((name.into(), text.into()));
        }
    }

    /// The template called `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.named.iter();
        let (_, text) = named.find(|(known, _)| &**known == name)?;
        Some(text)
    }

    /// The template for conversations without tools.
    pub fn default_text(&self) -> Option<&str> {
        self.get(DEFAULT)
    }

    /// The template for a conversation with or without tools, as `transformers` chooses it.
    pub fn choose(&self, has_tools: bool) -> Option<&str> {
        let tool_use = self.get(TOOL_USE).filter(|_| has_tools);
        tool_use.or_else(|| self.default_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_choose_their_template() {
        let mut templates = ChatTemplates::one("a");
        assert_eq!(templates.choose(true), Some("a"));
        templates.add("tool_use", "b");
        templates.add("tool_use", "c");
        templates.add("rag", "d");
        assert_eq!(templates.choose(true), Some("b"));
        assert_eq!(templates.choose(false), Some("a"));
        assert_eq!(templates.get("rag"), Some("d"));
        assert_eq!(ChatTemplates::default().choose(true), None);
    }
}
