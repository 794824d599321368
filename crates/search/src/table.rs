//! The table of word vectors, read in place from the program's own image.
//!
//! `data/README.md` describes the format. Nothing is parsed or copied before the first look-up.

use std::{cmp::Ordering, sync::LazyLock};

use crate::vector::ZERO;

/// Numbers in each vector of the embedded table.
pub(crate) const DIMENSIONS: usize = 256;
/// One vector.
pub(crate) type Vector = [f32; DIMENSIONS];
/// A token's place in the table; the embedded table has fewer than 65,536.
pub(crate) type TokenId = u16;

/// Values of four bits are stored with this added.
const NIBBLE_OFFSET: f32 = 8.0;
const HEADER_LENGTH: usize = 24;
const ROW_LENGTH: usize = DIMENSIONS / 2;

static FILE: &[u8] = include_bytes!("../data/tool-embed-256.bin");
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(FILE).unwrap_or_default());

/// Views into the file's parts.
#[derive(Default)]
pub(crate) struct Table {
    tokens: usize,
    offsets: &'static [u8],
    blob: &'static [u8],
    scales: &'static [u8],
    rows: &'static [u8],
}

impl Table {
    /// The table inside this program.
    pub(crate) fn embedded() -> &'static Self {
        &TABLE
    }

    /// Splits a file into its parts; `None` where it is not a four-bit table of [`DIMENSIONS`].
    fn read(file: &'static [u8]) -> Option<Self> {
        let header = |index: usize| number(file, index).map(|value| value as usize);
        let (version, tokens, dimensions, bits, blob_length) = (header(1)?, header(2)?, header(3)?, header(4)?, header(5)?);
        if !file.starts_with(b"TEMB")
            || version != 1
            || dimensions != DIMENSIONS
            || bits != 4
            || tokens > usize::from(TokenId::MAX)
        {
            return None;
        }
        let (offsets, rest) = file.get(HEADER_LENGTH..)?.split_at_checked(4 * (tokens + 1))?;
        let (blob, rest) = rest.split_at_checked(blob_length)?;
        let (scales, rows) = rest.split_at_checked(4 * tokens)?;
        (rows.len() == tokens * ROW_LENGTH).then_some(Self { tokens, offsets, blob, scales, rows })
    }

    /// Finds a token by its exact spelling; `##x` is a piece that continues a word.
    pub(crate) fn find(&self, token: &str) -> Option<TokenId> {
        let (mut low, mut high) = (0, self.tokens);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.token(middle).cmp(token.as_bytes()) {
                Ordering::Equal => return TokenId::try_from(middle).ok(),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// A token's vector. Common words have short ones: their weight is folded in.
    pub(crate) fn row(&self, token: TokenId) -> Vector {
        let mut vector = ZERO;
        self.add_row(token, 1.0, &mut vector);
        vector
    }

    /// Adds `factor` times a token's vector to `target`.
    pub(crate) fn add_row(&self, token: TokenId, factor: f32, target: &mut Vector) {
        let index = usize::from(token);
        let scale = number(self.scales, index).map_or(0.0, f32::from_bits) * factor;
        let row = self.rows.get(index * ROW_LENGTH..).unwrap_or_default();
        for (pair, byte) in target.chunks_exact_mut(2).zip(row) {
            if let [even, odd] = pair {
                *even += (f32::from(byte & 15) - NIBBLE_OFFSET) * scale;
                *odd += (f32::from(byte >> 4) - NIBBLE_OFFSET) * scale;
            }
        }
    }

    /// A token's spelling, as bytes.
    fn token(&self, index: usize) -> &'static [u8] {
        let offset = |index| number(self.offsets, index).map(|offset| offset as usize);
        let range = || self.blob.get(offset(index)?..offset(index + 1)?);
        range().unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn spelling(&self, token: TokenId) -> &'static str {
        std::str::from_utf8(self.token(usize::from(token))).expect("tokens are UTF-8")
    }
}

/// The little-endian number at place `index` of an array of them.
fn number(bytes: &[u8], index: usize) -> Option<u32> {
    let (number, _) = bytes.get(index * 4..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_is_a_whole_sorted_table() {
        let table = Table::read(FILE).expect("the file is a table of the expected form");
        assert_eq!(table.tokens, 28_706);
        assert!((1..table.tokens).all(|index| table.token(index - 1) < table.token(index)));
        for index in [0, 1, 4_000, table.tokens - 1] {
            let id = TokenId::try_from(index).expect("ids fit");
            assert_eq!(table.find(table.spelling(id)), Some(id));
        }
        assert_eq!(table.find("no such token"), None);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Table::read(b"").is_none());
        assert!(Table::read(b"TEMB").is_none());
        assert!(Table::read(&FILE[..FILE.len() - 1]).is_none());
        assert!(Table::read(&FILE[1..]).is_none());
    }
}
