//! A row of a step: a token of a sequence, and where the sequence is in the KV cache.

use std::marker::PhantomData;

use super::PAGE_TOKENS;

/// One row of a step: a token of a sequence. The kernel module reads it from the memory of the module that fills it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Row<'a> {
    position: usize,
    first: usize,
    length: usize,
    rotary: [u32; 3],
    pages: *const u32,
    page_count: usize,
    borrowed: PhantomData<&'a [u32]>,
}

// SAFETY: a row is a number and a borrow of numbers.
unsafe impl Send for Row<'_> {}
// SAFETY: as above.
unsafe impl Sync for Row<'_> {}

impl<'a> Row<'a> {
    /// The token that `position` tokens of its sequence precede. `pages` is the sequence's block table: the numbers of
    /// its pages, which cover `position + 1` tokens.
    ///
    /// # Panics
    /// If they do not.
    pub fn new(position: usize, pages: &'a [u32]) -> Row<'a> {
        assert!(
            position / PAGE_TOKENS < pages.len(),
            "token {position} of a sequence with {} pages",
            pages.len()
        );
        Row {
            position,
            first: 0,
            length: position + 1,
            rotary: [position as u32; 3],
            pages: pages.as_ptr(),
            page_count: pages.len(),
            borrowed: PhantomData,
        }
    }

    /// The same token where attention is not causal: it sees `length` tokens of its sequence, with itself.
    ///
    /// # Panics
    /// If it is not among them, or the pages do not cover them.
    pub fn seeing(self, length: usize) -> Row<'a> {
        assert!(
            self.position < length && length.div_ceil(PAGE_TOKENS) <= self.page_count,
            "token {} of {length} in {} pages",
            self.position,
            self.page_count
        );
        Row { length, ..self }
    }

    /// The same token where it sees none before `first`.
    ///
    /// # Panics
    /// If it is one of these.
    pub fn since(self, first: usize) -> Row<'a> {
        assert!(
            first <= self.position,
            "token {} since {first}",
            self.position
        );
        Row { first, ..self }
    }

    /// The same token at a rotary position of its own: time, row and column.
    pub fn turned(self, rotary: [u32; 3]) -> Row<'a> {
        Row { rotary, ..self }
    }

    /// Time, row and column of its rotary position: its index, unless [`turned`](Self::turned) says otherwise.
    pub fn rotary(self) -> [u32; 3] {
        self.rotary
    }

    /// Tokens of the sequence that attention may see: `position + 1` where it is causal.
    pub fn length(self) -> usize {
        self.length
    }

    /// The first token that attention may see.
    pub fn first(self) -> usize {
        self.first
    }

    /// Tokens that precede the token in its sequence.
    pub fn position(self) -> usize {
        self.position
    }

    /// The sequence's block table.
    pub fn pages(self) -> &'a [u32] {
        // SAFETY: `new` borrowed them.
        unsafe { std::slice::from_raw_parts(self.pages, self.page_count) }
    }

    /// The number of page `page` of the sequence.
    ///
    /// # Safety
    /// The sequence has the page.
    pub(crate) unsafe fn page(self, page: usize) -> u32 {
        // SAFETY: the caller's.
        unsafe { *self.pages.add(page) }
    }

    /// Whether `next` is the next token of the same sequence, and sees no fewer tokens.
    pub(crate) fn precedes(self, next: Row) -> bool {
        self.pages == next.pages
            && next.position == self.position + 1
            && next.length >= self.length
            && next.first == self.first
    }
}
