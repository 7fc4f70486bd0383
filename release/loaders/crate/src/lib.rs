//! The test vectors, as README.md describes them: JSON texts, for whatever parser you use.

/// The release of the vectors.
pub const VERSION: &str = "@VERSION@";

/// The name and the JSON text of each family.
pub const FAMILIES: &[(&str, &str)] = &[
    // @FAMILIES@
];

/// Returns the JSON text of one family.
pub fn load(family: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|(name, _)| *name == family).map(|(_, text)| *text)
}
