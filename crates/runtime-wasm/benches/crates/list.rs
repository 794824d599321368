//! Crates that people use most, each with a program that uses it and what that prints.

#![allow(clippy::needless_raw_string_hashes, reason = "all programs are written alike, and some need the hashes")]

/// A crate in use.
pub(crate) struct Case {
    /// As a tool lists them; the first one is what it is about.
    pub(crate) dependencies: &'static [&'static str],
    /// The body of `main`.
    pub(crate) code: &'static str,
    pub(crate) prints: &'static str,
}

/// How many at the start of the list are built by each run of the tests.
pub(crate) const QUICK: usize = 10;

impl Case {
    pub(crate) fn name(&self) -> String {
        self.dependencies[0].split(['@', '[']).next().unwrap_or_default().replace('-', "_")
    }

    pub(crate) fn program(&self) -> String {
        format!("#![allow(unused)]\nfn main() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n", self.code)
    }
}

macro_rules! cases {
    ($([$($dependency:literal),+] $code:literal => $prints:literal;)*) => {
        &[$(Case { dependencies: &[$($dependency),+], code: $code, prints: $prints }),*]
    };
}

pub(crate) const CASES: &[Case] = cases! {
    ["csv"] r##"let mut r = csv::Reader::from_reader("a,b\n1,2\n3,4\n".as_bytes()); let n: i32 = r.records().map(|x| x.unwrap()[1].parse::<i32>().unwrap()).sum(); print!("{n}");"## => "6";
    ["regex"] r##"print!("{}", regex::Regex::new(r"\d+")?.replace_all("a1b22", "#"));"## => "a#b#";
    ["chrono"] r##"print!("{}", chrono::NaiveDate::from_ymd_opt(2024, 2, 29).unwrap() + chrono::Days::new(1)); let _ = chrono::Utc::now();"## => "2024-03-01";
    ["rand"] r##"let n: u8 = rand::random(); print!("{}", u32::from(n) < 256);"## => "true";
    ["uuid@1[v4]"] r##"print!("{}", uuid::Uuid::new_v4().get_version_num());"## => "4";
    ["sha2"] r##"use sha2::Digest; print!("{:02x}", sha2::Sha256::digest(b"abc")[0]);"## => "ba";
    ["serde_yaml"] r##"let v: serde_yaml::Value = serde_yaml::from_str("a: [1, 2]")?; print!("{}", v["a"][1].as_i64().unwrap());"## => "2";
    ["indexmap"] r##"let m: indexmap::IndexMap<_, _> = [("z", 1), ("a", 2)].into(); print!("{:?}", m.keys().collect::<Vec<_>>());"## => "[\"z\", \"a\"]";
    ["itertools"] r##"use itertools::Itertools; print!("{}", (1..4).join("-"));"## => "1-2-3";
    ["base64"] r##"use base64::prelude::*; print!("{}", BASE64_STANDARD.encode("hi"));"## => "aGk=";
    ["time@0.3[formatting,parsing,macros]"] r##"let d = time::Date::from_calendar_date(2024, time::Month::March, 1)?; print!("{}", d.ordinal()); let _ = time::OffsetDateTime::now_utc();"## => "61";
    ["url"] r##"print!("{}", url::Url::parse("https://a.example/b?c=1#d")?.query().unwrap());"## => "c=1";
    ["hex"] r##"print!("{}", hex::encode([255, 0]));"## => "ff00";
    ["semver"] r##"print!("{}", semver::VersionReq::parse("^1.2")?.matches(&semver::Version::parse("1.9.0")?));"## => "true";
    ["toml"] r##"let t: toml::Table = toml::from_str("a = 3")?; print!("{}", t["a"]);"## => "3";
    ["unicode-segmentation"] r##"use unicode_segmentation::UnicodeSegmentation; print!("{}", "e\u{301}a".graphemes(true).count());"## => "2";
    ["nalgebra"] r##"let m = nalgebra::Matrix2::new(1.0, 2.0, 3.0, 4.0); print!("{}", m.determinant());"## => "-2";
    ["image@0.25[default-features=false,png]"] r##"let mut b = std::io::Cursor::new(Vec::new()); image::RgbImage::new(2, 3).write_to(&mut b, image::ImageFormat::Png)?; print!("{}", image::load_from_memory(b.get_ref())?.height());"## => "3";
    ["serde@1[derive]", "serde_json"] r##"#[derive(serde::Serialize)] struct A { b: u8 } print!("{}", serde_json::to_string(&A { b: 1 })?);"## => "{\"b\":1}";
    ["anyhow"] r##"fn f() -> anyhow::Result<()> { anyhow::bail!("no") } print!("{}", f().unwrap_err());"## => "no";
    ["thiserror"] r##"#[derive(Debug, thiserror::Error)] #[error("no {0}")] struct E(u8); print!("{}", E(1));"## => "no 1";
    ["rust_decimal"] r##"use std::str::FromStr; print!("{}", rust_decimal::Decimal::from_str("0.1")? + rust_decimal::Decimal::from_str("0.2")?);"## => "0.3";
    ["num-bigint"] r##"print!("{}", num_bigint::BigUint::from(2_u8).pow(70));"## => "1180591620717411303424";
    ["num-traits"] r##"use num_traits::ToPrimitive; print!("{:?}", 300.to_u8());"## => "None";
    ["num"] r##"print!("{}", num::integer::gcd(12, 18));"## => "6";
    ["ndarray"] r##"print!("{}", ndarray::array![[1, 2], [3, 4]].sum());"## => "10";
    ["petgraph"] r##"let g = petgraph::graph::UnGraph::<(), ()>::from_edges([(0, 1), (2, 3)]); print!("{}", petgraph::algo::connected_components(&g));"## => "2";
    ["rayon"] r##"use rayon::prelude::*; print!("{}", (1..=4).into_par_iter().sum::<i32>());"## => "10";
    ["once_cell"] r##"static N: once_cell::sync::Lazy<u8> = once_cell::sync::Lazy::new(|| 7); print!("{}", *N);"## => "7";
    ["lazy_static"] r##"lazy_static::lazy_static! { static ref N: u8 = 7; } print!("{}", *N);"## => "7";
    ["bytes"] r##"use bytes::Buf; print!("{}", (&[1_u8, 2][..]).get_u16());"## => "258";
    ["smallvec"] r##"let v: smallvec::SmallVec<[u8; 4]> = smallvec::smallvec![1, 2]; print!("{}", v.len());"## => "2";
    ["arrayvec"] r##"let v: arrayvec::ArrayVec<u8, 4> = [1, 2].into_iter().collect(); print!("{}", v.len());"## => "2";
    ["hashbrown"] r##"let m: hashbrown::HashMap<u8, u8> = [(1, 2)].into_iter().collect(); print!("{}", m[&1]);"## => "2";
    ["ahash"] r##"let mut m = ahash::AHashMap::new(); m.insert(1, 2); print!("{}", m[&1]);"## => "2";
    ["fxhash"] r##"print!("{}", fxhash::hash32(&1_u8) == fxhash::hash32(&1_u8));"## => "true";
    ["bitflags"] r##"bitflags::bitflags! { struct F: u8 { const A = 1; const B = 2; } } print!("{}", (F::A | F::B).bits());"## => "3";
    ["either"] r##"let e: either::Either<u8, &str> = either::Left(1); print!("{e}");"## => "1";
    ["memchr"] r##"print!("{:?}", memchr::memmem::find(b"abcd", b"cd"));"## => "Some(2)";
    ["aho-corasick"] r##"print!("{}", aho_corasick::AhoCorasick::new(["a", "bc"])?.find_iter("abcab").count());"## => "3";
    ["fancy-regex"] r##"print!("{}", fancy_regex::Regex::new(r"(\w)\1")?.is_match("hello")?);"## => "true";
    ["strum@0.27[derive]"] r##"use strum::IntoEnumIterator; #[derive(strum::EnumIter)] enum A { B, C } print!("{}", A::iter().count());"## => "2";
    ["heck"] r##"use heck::ToSnakeCase; print!("{}", "HelloWorld".to_snake_case());"## => "hello_world";
    ["unicode-normalization"] r##"use unicode_normalization::UnicodeNormalization; print!("{}", "e\u{301}".nfc().count());"## => "1";
    ["unicode-width"] r##"use unicode_width::UnicodeWidthStr; print!("{}", "重要".width());"## => "4";
    ["textwrap"] r##"print!("{}", textwrap::fill("a bb ccc", 4));"## => "a bb\nccc";
    ["strsim"] r##"print!("{}", strsim::levenshtein("kitten", "sitting"));"## => "3";
    ["similar"] r##"print!("{}", similar::TextDiff::from_lines("a\nb\n", "a\nc\n").iter_all_changes().count());"## => "3";
    ["percent-encoding"] r##"print!("{}", percent_encoding::utf8_percent_encode("a b", percent_encoding::NON_ALPHANUMERIC));"## => "a%20b";
    ["md-5"] r##"use md5::Digest; print!("{:02x}", md5::Md5::digest(b"")[0]);"## => "d4";
    ["sha1"] r##"use sha1::Digest; print!("{:02x}", sha1::Sha1::digest(b"abc")[0]);"## => "a9";
    ["hmac@0.12", "sha2@0.10"] r##"use hmac::Mac; let mut m = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"k")?; m.update(b"a"); print!("{}", m.finalize().into_bytes().len());"## => "32";
    ["blake3"] r##"print!("{}", &blake3::hash(b"").to_hex()[..4]);"## => "af13";
    ["crc32fast"] r##"print!("{:x}", crc32fast::hash(b"123456789"));"## => "cbf43926";
    ["flate2"] r##"use std::io::{Read, Write}; let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()); e.write_all(b"hi")?; let mut s = String::new(); flate2::read::GzDecoder::new(&e.finish()?[..]).read_to_string(&mut s)?; print!("{s}");"## => "hi";
    ["zip@2[default-features=false,deflate]"] r##"use std::io::Write; let mut z = zip::ZipWriter::new(std::io::Cursor::new(Vec::new())); z.start_file("a", zip::write::SimpleFileOptions::default())?; z.write_all(b"x")?; print!("{}", zip::ZipArchive::new(z.finish()?)?.len());"## => "1";
    ["quick-xml"] r##"let mut r = quick_xml::Reader::from_str("<a><b/></a>"); let mut n = 0; while !matches!(r.read_event()?, quick_xml::events::Event::Eof) { n += 1; } print!("{n}");"## => "3";
    ["roxmltree"] r##"print!("{}", roxmltree::Document::parse("<a b='1'/>")?.root_element().attribute("b").unwrap());"## => "1";
    ["scraper"] r##"let h = scraper::Html::parse_document("<p>x</p>"); let s = scraper::Selector::parse("p").unwrap(); print!("{}", h.select(&s).next().unwrap().inner_html());"## => "x";
    ["pulldown-cmark"] r##"let mut s = String::new(); pulldown_cmark::html::push_html(&mut s, pulldown_cmark::Parser::new("*a*")); print!("{}", s.trim());"## => "<p><em>a</em></p>";
    ["handlebars"] r##"print!("{}", handlebars::Handlebars::new().render_template("{{a}}", &std::collections::BTreeMap::from([("a", 1)]))?);"## => "1";
    ["minijinja"] r##"print!("{}", minijinja::Environment::new().render_str("{{ 1 + 1 }}", ())?);"## => "2";
    ["nom"] r##"use nom::Parser; let r: nom::IResult<&str, &str> = nom::character::complete::digit1.parse("12a"); print!("{}", r.unwrap().1);"## => "12";
    ["winnow"] r##"use winnow::Parser; let r: Result<&str, winnow::error::ContextError> = winnow::ascii::digit1.parse_peek("12a").map(|x| x.1); print!("{}", r.unwrap());"## => "12";
    ["pest"] r##"print!("{}", pest::Span::new("abc", 1, 2).unwrap().as_str());"## => "b";
    ["bincode@1"] r##"print!("{}", bincode::serialize(&(1_u8, 2_u16))?.len());"## => "3";
    ["rmp-serde"] r##"print!("{}", rmp_serde::to_vec(&(1, 2))?.len());"## => "3";
    ["ciborium"] r##"let mut b = Vec::new(); ciborium::into_writer(&1, &mut b)?; print!("{}", b.len());"## => "1";
    ["ordered-float"] r##"print!("{}", ordered_float::OrderedFloat(1.5) < ordered_float::OrderedFloat(2.0));"## => "true";
    ["statrs"] r##"use statrs::statistics::Statistics; print!("{}", [1.0, 2.0, 3.0].mean());"## => "2";
    ["humantime"] r##"print!("{}", humantime::format_duration(std::time::Duration::from_secs(90)));"## => "1m 30s";
    ["walkdir"] r##"print!("{}", walkdir::WalkDir::new("/nothing").into_iter().filter_map(Result::ok).count());"## => "0";
    ["phf@0.11[macros]"] r##"static M: phf::Map<&str, u8> = phf::phf_map! { "a" => 1 }; print!("{}", M["a"]);"## => "1";
};
