#[test]
fn every_family_is_of_this_version() {
    assert!(lance_vectors::load("crc").is_some());
    assert!(lance_vectors::load("no-such-family").is_none());
    let corpus = format!("\"corpus\": \"{}\"", lance_vectors::VERSION);
    for (name, text) in lance_vectors::FAMILIES {
        assert!(text.contains(&corpus), "{name}");
        assert!(text.trim_end().ends_with('}'), "{name}");
    }
}
