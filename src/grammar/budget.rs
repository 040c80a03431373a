//! Limits on the work that one source may cause in llguidance, which cannot be interrupted and uses the
//! stack of the page. The counts cover the whole source with all grammars and schemas in it.

/// Names, strings, subschemas and the like: llguidance compares each new one with all earlier ones.
const MAX_PARTS: usize = 8_000;
/// Estimated steps of about 1 µs each.
const MAX_WORK: usize = 2_000_000;
/// Grammars that may have limits of their own: llguidance numbers them with a byte.
const MAX_GRAMMARS: usize = 128;

/// The part that has been used so far.
#[derive(Debug, Default)]
pub struct Budget {
    parts: usize,
    work: usize,
    grammars: usize,
}

impl Budget {
    /// Counts parts.
    ///
    /// # Errors
    /// A message for humans if there are too many; the other methods fail in the same way.
    pub fn count(&mut self, parts: usize) -> Result<(), String> {
        self.parts = self.parts.saturating_add(parts);
        if self.parts > MAX_PARTS {
            return Err(format!("this has more than {MAX_PARTS} parts"));
        }
        Ok(())
    }

    /// Parts counted so far.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Counts estimated work.
    ///
    /// # Errors
    /// Same as [`Self::count`].
    pub fn spend(&mut self, work: usize) -> Result<(), String> {
        self.work = self.work.saturating_add(work);
        if self.work > MAX_WORK {
            return Err("this combines too many alternatives, patterns or digits".to_owned());
        }
        Ok(())
    }

    /// Counts a grammar.
    ///
    /// # Errors
    /// Same as [`Self::count`].
    pub fn count_grammar(&mut self) -> Result<(), String> {
        self.grammars += 1;
        if self.grammars > MAX_GRAMMARS {
            return Err(format!("this has more than {MAX_GRAMMARS} grammars in it"));
        }
        self.count(1)
    }
}
