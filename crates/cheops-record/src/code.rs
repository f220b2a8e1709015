//! Bytes: how numbers, texts and lists are written, and how they are read without trust.
//!
//! Numbers take seven bits a byte, the lowest first; texts and lists begin with how many there are.
//! What may be of a kind that a later version adds is a [`ByteReader::section`]: a number, a length, and
//! so many bytes, so that who does not know the kind knows where it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::model::{BadName, EntryId, IdError};

/// Why bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// There is nothing.
    #[error("there is nothing to read")]
    Nothing,
    /// It is of a version that this program does not read.
    #[error("it has version {0}, which this version of the program does not know: upgrade it")]
    Version(u8),
    /// The bytes end before what they begin.
    #[error("it ends too early")]
    Cut,
    /// There are bytes behind the end.
    #[error("{0} says more than this version knows: upgrade this agent")]
    More(&'static str),
    /// There is something behind the end of something that has one.
    #[error("there is more than belongs there")]
    Trailing,
    /// A number is beyond what it can be.
    #[error("a number is too large")]
    TooLarge,
    /// Something that is yes or no is neither.
    #[error("{0} is neither yes nor no")]
    NotAFlag(u8),
    /// A text is no text.
    #[error("a text is not UTF-8")]
    NotText,
    /// More of them than there can be.
    #[error("{found} of something of which there are at most {most}")]
    TooMany {
        /// How many it says there are.
        found: u64,
        /// How many there can be.
        most: u64,
    },
    /// A name breaks its rule.
    #[error(transparent)]
    Name(#[from] IdError),
    /// A later version made this.
    #[error("{what} of kind {kind} is not known to this version: upgrade this agent")]
    UnknownKind {
        /// Of what.
        what: &'static str,
        /// Which.
        kind: u64,
    },
    /// A later version said this, and it must be understood.
    #[error("it says `{0}`, which this version does not know: upgrade this agent")]
    UnknownExtension(String),
    /// It is in an entry.
    #[error("entry `{id}` cannot be read: {why}")]
    Entry {
        /// Which.
        id: EntryId,
        /// What is wrong with it.
        why: Box<FormError>,
    },
}

impl From<BadName> for FormError {
    fn from(bad: BadName) -> Self {
        Self::Name(bad.into())
    }
}

impl FormError {
    /// Whether a later version made it, rather than somebody who is mistaken.
    pub fn is_of_a_later_version(&self) -> bool {
        match self {
            Self::Version(_)
            | Self::More(_)
            | Self::UnknownKind { .. }
            | Self::UnknownExtension(_) => true,
            Self::Entry { why, .. } => why.is_of_a_later_version(),
            _ => false,
        }
    }

    pub(crate) fn of_entry(self, id: &EntryId) -> Self {
        match self {
            Self::Entry { .. } => self,
            why => Self::Entry { id: id.clone(), why: Box::new(why) },
        }
    }
}

/// Bytes on their way in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], FormError> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(FormError::Cut);
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, FormError> {
        let Some((first, rest)) = self.0.split_first() else { return Err(FormError::Cut) };
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, FormError> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 0 && bits << shift >> shift != bits {
                return Err(FormError::TooLarge);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(FormError::TooLarge)
    }

    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, FormError> {
        T::try_from(self.number()?).map_err(|_large| FormError::TooLarge)
    }

    /// Small numbers of either sign.
    pub(crate) fn signed(&mut self) -> Result<i32, FormError> {
        let value: u32 = self.small()?;
        let half = i32::try_from(value >> 1).map_err(|_large| FormError::TooLarge)?;
        Ok(if value & 1 == 1 { -half - 1 } else { half })
    }

    pub(crate) fn flag(&mut self) -> Result<bool, FormError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(FormError::NotAFlag(other)),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], FormError> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_long| FormError::Cut)?)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, FormError> {
        std::str::from_utf8(self.bytes()?).map_err(|_other| FormError::NotText)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormError> {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return Err(FormError::Cut) };
        self.0 = rest;
        Ok(*taken)
    }

    /// How many there are of something that takes so many bytes at least: no more than there can
    /// be in what is left, so that a number alone claims no memory.
    pub(crate) fn count(&mut self, least_bytes: usize) -> Result<usize, FormError> {
        let found = self.number()?;
        let most = (self.0.len() / least_bytes.max(1)) as u64;
        match usize::try_from(found) {
            Ok(count) if found <= most => Ok(count),
            _ => Err(FormError::TooMany { found, most }),
        }
    }

    /// Something with its length before it.
    pub(crate) fn section(&mut self) -> Result<ByteReader<'a>, FormError> {
        let length = u32::from_le_bytes(self.array()?);
        let length = usize::try_from(length).map_err(|_long| FormError::Cut)?;
        self.take(length).map(ByteReader)
    }

    /// Nothing follows.
    pub(crate) fn end(&self) -> Result<(), FormError> {
        if self.0.is_empty() { Ok(()) } else { Err(FormError::Trailing) }
    }

    /// Nothing follows that this version does not know.
    pub(crate) fn knows_all(&self, what: &'static str) -> Result<(), FormError> {
        if self.0.is_empty() { Ok(()) } else { Err(FormError::More(what)) }
    }
}

/// Bytes on their way out.
pub(crate) trait Writer {
    fn number(&mut self, value: u64);
    fn signed(&mut self, value: i32);
    fn flag(&mut self, value: bool);
    fn bytes(&mut self, value: &[u8]);
    fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }
    fn raw(&mut self, value: &[u8]);
    fn section(&mut self, write: impl FnOnce(&mut Self));
}

impl Writer for Vec<u8> {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.push(value.to_le_bytes()[0]);
    }

    fn signed(&mut self, value: i32) {
        let twice = i64::from(value) * 2;
        let folded = if value < 0 { -twice - 1 } else { twice };
        self.number(folded.unsigned_abs());
    }

    fn flag(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.extend_from_slice(value);
    }

    fn raw(&mut self, value: &[u8]) {
        self.extend_from_slice(value);
    }

    fn section(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.len();
        self.extend_from_slice(&[0; 4]);
        write(self);
        // What does not fit four bytes fits no frame and no row either: those say so.
        let length = u32::try_from(self.len() - start - 4).unwrap_or(u32::MAX);
        self[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// So many names of one kind are kept at a time.
pub(crate) const MOST_FREQUENT: usize = 32;

/// Something with a written form of this version.
pub(crate) trait Form: Sized {
    /// How many bytes it takes at least.
    const LEAST: usize;
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError>;
}

impl Form for u64 {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(*self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.number()
    }
}

macro_rules! small_numbers {
    ($($type:ty),*) => {$(
        impl Form for $type {
            const LEAST: usize = 1;
            fn put(&self, out: &mut Vec<u8>) {
                out.number(u64::from(*self));
            }
            fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
                from.small()
            }
        }
    )*};
}
small_numbers!(u32, u16);

impl Form for i32 {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.signed(*self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.signed()
    }
}

impl Form for bool {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.flag(*self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.flag()
    }
}

impl Form for String {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.text(self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.text().map(str::to_owned)
    }
}

impl Form for [u8; 32] {
    const LEAST: usize = 32;
    fn put(&self, out: &mut Vec<u8>) {
        out.raw(self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.array()
    }
}

impl<T: Form> Form for Option<T> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.flag(self.is_some());
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        if from.flag()? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Form> Form for Box<T> {
    const LEAST: usize = T::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        T::take(from).map(Self::new)
    }
}

impl<T: Form> Form for Arc<T> {
    const LEAST: usize = T::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        T::take(from).map(Self::new)
    }
}

impl<A: Form, B: Form> Form for (A, B) {
    const LEAST: usize = A::LEAST + B::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<A: Form, B: Form, C: Form> Form for (A, B, C) {
    const LEAST: usize = A::LEAST + B::LEAST + C::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok((A::take(from)?, B::take(from)?, C::take(from)?))
    }
}

impl<T: Form> Form for Vec<T> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(self.len() as u64);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(T::LEAST)?).map(|_| T::take(from)).collect()
    }
}

impl<T: Form + Ord> Form for BTreeSet<T> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(self.len() as u64);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(T::LEAST)?).map(|_| T::take(from)).collect()
    }
}

impl<K: Form + Ord, V: Form> Form for BTreeMap<K, V> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(self.len() as u64);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(K::LEAST + V::LEAST)?).map(|_| <(K, V)>::take(from)).collect()
    }
}

/// Names: texts that follow a rule.
macro_rules! names {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::code::Form for $type {
            const LEAST: usize = 2;
            fn put(&self, out: &mut Vec<u8>) {
                $crate::code::Writer::text(out, self.as_str());
            }
            fn take(
                from: &mut $crate::code::ByteReader<'_>,
            ) -> Result<Self, $crate::code::FormError> {
                Ok(Self::new(from.text()?)?)
            }
        }
    )*};
}

/// The same of names that stand in nearly all that is read, and are few: each is kept once, and not made
/// anew each time.
macro_rules! frequent_names {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::code::Form for $type {
            const LEAST: usize = 2;
            fn put(&self, out: &mut Vec<u8>) {
                $crate::code::Writer::text(out, self.as_str());
            }
            fn take(
                from: &mut $crate::code::ByteReader<'_>,
            ) -> Result<Self, $crate::code::FormError> {
                thread_local! {
                    static KNOWN: std::cell::RefCell<Vec<$type>> = const {
                        std::cell::RefCell::new(Vec::new())
                    };
                }
                let text = from.text()?;
                KNOWN.with_borrow_mut(|known| {
                    if let Some(name) = known.iter().find(|name| name.as_str() == text) {
                        return Ok(name.clone());
                    }
                    let name = Self::new(text)?;
                    // Who sends ever new ones makes nobody keep them.
                    if known.len() >= $crate::code::MOST_FREQUENT {
                        known.clear();
                    }
                    known.push(name.clone());
                    Ok(name)
                })
            }
        }
    )*};
}

/// Things made of parts, one after the other. A part that is not named does not compile.
macro_rules! parts {
    ($type:ident, $least:literal, { $($member:tt: $field:ident),* $(,)? }) => {
        impl $crate::code::Form for $type {
            const LEAST: usize = $least;
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($member: $field),* } = self;
                $($crate::code::Form::put($field, out);)*
            }
            fn take(
                from: &mut $crate::code::ByteReader<'_>,
            ) -> Result<Self, $crate::code::FormError> {
                $(let $field = $crate::code::Form::take(from)?;)*
                Ok(Self { $($member: $field),* })
            }
        }
    };
}

/// One of a few, without parts.
macro_rules! choices {
    ($type:ident, $what:literal, { $($tag:literal => $variant:ident),* $(,)? }) => {
        impl $crate::code::Form for $type {
            const LEAST: usize = 1;
            fn put(&self, out: &mut Vec<u8>) {
                let tag: u64 = match self { $(Self::$variant => $tag),* };
                $crate::code::Writer::number(out, tag);
            }
            fn take(
                from: &mut $crate::code::ByteReader<'_>,
            ) -> Result<Self, $crate::code::FormError> {
                match from.number()? {
                    $($tag => Ok(Self::$variant),)*
                    kind => Err($crate::code::FormError::UnknownKind { what: $what, kind }),
                }
            }
        }
    };
}

/// One of some kinds, each with its parts: the number of the kind, a length, and so many bytes.
macro_rules! kinds {
    ($type:ident, $what:literal, {
        $($tag:literal => $variant:ident { $($member:tt: $field:ident),* $(,)? }),* $(,)?
    }) => {
        impl $crate::code::Form for $type {
            const LEAST: usize = 5;
            fn put(&self, out: &mut Vec<u8>) {
                let tag: u64 = match self { $(Self::$variant { .. } => $tag),* };
                $crate::code::Writer::number(out, tag);
                $crate::code::Writer::section(out, |out| match self {
                    $(Self::$variant { $($member: $field),* } => {
                        let _nothing_if_it_has_no_parts = &out;
                        $($crate::code::Form::put($field, out);)*
                    })*
                });
            }
            fn take(
                from: &mut $crate::code::ByteReader<'_>,
            ) -> Result<Self, $crate::code::FormError> {
                let kind = from.number()?;
                let mut inner = from.section()?;
                let from = &mut inner;
                let made = match kind {
                    $($tag => {
                        $(let $field = $crate::code::Form::take(from)?;)*
                        Self::$variant { $($member: $field),* }
                    })*
                    kind => {
                        return Err($crate::code::FormError::UnknownKind { what: $what, kind });
                    }
                };
                from.knows_all($what)?;
                Ok(made)
            }
        }
    };
}

pub(crate) use {choices, frequent_names, kinds, names, parts};
