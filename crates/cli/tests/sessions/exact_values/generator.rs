//! Values at the edges of JSON: first a table of all that is known to be difficult, then random ones from a seed.

use super::json::{Json, MOST_DIGITS, cut};

/// A small generator of random numbers (SplitMix64); equal seeds give equal values.
pub(super) struct Random(pub(super) u64);

const INTEGERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "255",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9007199254740991",
    "-9007199254740991",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
];
const LARGE_INTEGERS: &[&str] = &[
    "9007199254740993",
    "-9007199254740993",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "123456789012345678901234567890",
];
const FLOATS: &[&str] = &[
    "0.0",
    "-0.0",
    "0.1",
    "-0.5",
    "3.0",
    "1e3",
    "1E+2",
    "12e-1",
    "0.30000000000000004",
    "1.7976931348623157e308",
    "-1.7976931348623157e+308",
    "2.2250738585072014e-308",
    "2.2250738585072011e-308",
    "5e-324",
    "4.9406564584124654e-324",
    "1.2345678901234567",
    "9007199254740991.0",
    "1e15",
    "123456789.12345679",
    "2.675",
    "0.1000000000000000055511151231257827",
];
/// Whole, or beyond doubles: only what keeps numbers as they are written brings them through.
const WILD_NUMBERS: &[&str] = &[
    "1e16",
    "1e22",
    "1e23",
    "1e400",
    "-12e399",
    "1.5e308",
    "9007199254740993.0",
    "1.2345678901234567890123e22",
    "1e4299",
    "7e-400",
];
const ENDLESS_NUMBERS: &[&str] = &["1e4300", "1e1000000000", "-1e99999999999999999999"];
const TEXTS: &[&str] = &[
    r#""""#,
    r#""é ß 重要 ★""#,
    r#""🎉 👩‍👩‍👧 \ud83c\udf89""#,
    r#""\u0000 a\u0000""#,
    r#""\u2028\u2029 \u0085""#,
    "\"\u{2028}\u{2029}\u{85}\u{feff}\"",
    r#""\ud800""#,
    r#""a\udc00b""#,
    r#""\ud83d\ud83d\ude00""#,
    r#""\/\\\"\b\f\n\r\t\u001b[2J""#,
    r#""\u007f\u200d\u202e\ufffe\uffff""#,
    r#""null""#,
    r#""1e400""#,
    r#""[1,2]""#,
    r#""{\"a\":1}""#,
    r#""$input.value ${prev} $$""#,
    r#"" spaced ""#,
    r#""line\nbreak\r\n""#,
];
const KEYS: &[&str] = &[
    r#""""#,
    r#""0""#,
    r#""-1""#,
    r#""10""#,
    r#""9""#,
    r#""1e3""#,
    r#""__proto__""#,
    r#""constructor""#,
    r#""toString""#,
    r#""$ref""#,
    r#""content""#,
    r#""type""#,
    r#""isError""#,
    r#""a b""#,
    r#""a/b~c""#,
    r#""é""#,
    r#""e\u0301""#,
    r#""🎉""#,
    r#""\u0000""#,
    r#""\u2028""#,
    r#""\ud800""#,
    r#""$serde_json::private::Number""#,
    r#""_meta""#,
    r#""null""#,
    r#""jsonrpc""#,
];

/// Texts of the values that every way must bring through, or refuse with a reason.
pub(super) fn table() -> Vec<String> {
    let list = |items: &[&str]| format!("[{}]", items.join(","));
    let digits = |count: i64| "1234567890".chars().cycle().take(usize::try_from(count).unwrap()).collect::<String>();
    let keys: Vec<String> = KEYS.iter().enumerate().map(|(index, key)| format!("{key}:{index}")).collect();
    let mut values: Vec<String> = vec![
        list(INTEGERS.get(..7).unwrap()),
        list(FLOATS),
        list(TEXTS),
        format!("{{{}}}", keys.join(",")),
        list(&["null", "true", "false", "[]", "{}", "[[]]", "[null]", r#"{"":{}}"#]),
        format!("{}{}", "[".repeat(120), "]".repeat(120)),
        format!("{}1{}", r#"{"a":"#.repeat(118), "}".repeat(118)),
        format!("[{}]", (0..5_000).map(|index| (index * 7 % 1_000).to_string()).collect::<Vec<_>>().join(",")),
        digits(MOST_DIGITS),
        format!("-{}", digits(MOST_DIGITS)),
        digits(MOST_DIGITS + 1),
        list(INTEGERS),
        list(LARGE_INTEGERS),
    ];
    values.extend(WILD_NUMBERS.iter().chain(ENDLESS_NUMBERS).map(|number| (*number).to_owned()));
    values
}

impl Random {
    pub(super) fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap() % sides.max(1)
    }

    fn one_of(&mut self, all: &[&str]) -> String {
        all[self.below(all.len())].to_owned()
    }

    /// The text of a value that is nested at most so deep. Most are tame, so that not every one is refused by JavaScript.
    pub(super) fn value(&mut self, depth: usize) -> String {
        let wildness = self.below(4);
        let text = self.nested(depth, wildness);
        Json::read(&text).unwrap_or_else(|reason| panic!("the generator wrote no JSON, {reason}: {}", cut(&text)));
        text
    }

    fn nested(&mut self, depth: usize, wildness: usize) -> String {
        let size = 1 + self.below(5);
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => self.one_of(&["null", "true", "false", "[]", "{}"]),
            1 => self.integer(wildness),
            2 | 3 => self.float(wildness),
            4 | 5 => self.text(),
            6 => self.spine(depth, wildness),
            7 => format!("[{}]", (0..size).map(|_| self.nested(depth - 1, wildness)).collect::<Vec<_>>().join(",")),
            _ => {
                let mut fields: Vec<(String, String)> = Vec::new();
                for _ in 0..size {
                    let key = if self.below(2) == 0 { self.one_of(KEYS) } else { self.text() };
                    let value = self.nested(depth - 1, wildness);
                    // Keys that are one after repair would be refused, and rightly so.
                    if fields.iter().all(|(other, _)| Json::read(other) != Json::read(&key)) {
                        fields.push((key, value));
                    }
                }
                format!("{{{}}}", fields.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// A deep and thin value.
    fn spine(&mut self, depth: usize, wildness: usize) -> String {
        let levels = self.below(depth.min(60)) + 1;
        let mut text = self.nested(depth - levels.min(depth), wildness);
        for _ in 0..levels {
            text = if self.below(2) == 0 { format!("[{text}]") } else { format!(r#"{{"k":{text}}}"#) };
        }
        text
    }

    fn digits(&mut self, count: usize) -> String {
        let first = char::from(b'1' + u8::try_from(self.below(9)).unwrap());
        std::iter::once(first).chain((1..count).map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap()))).collect()
    }

    fn sign(&mut self) -> &'static str {
        if self.below(2) == 0 { "" } else { "-" }
    }

    fn integer(&mut self, wildness: usize) -> String {
        let (length, sign) = (1 + self.below(15), self.sign());
        match wildness {
            0 => format!("{sign}{}", self.digits(length)),
            1 => self.one_of(INTEGERS),
            2 => self.one_of(LARGE_INTEGERS),
            _ => {
                let most = if self.below(3) == 0 { 4_284 } else { 30 };
                let length = 16 + self.below(most);
                format!("{sign}{}", self.digits(length))
            }
        }
    }

    fn float(&mut self, wildness: usize) -> String {
        let (sign, exponent) = (self.sign(), self.below(300));
        match wildness {
            0 => self.one_of(FLOATS),
            // Any double, in the two forms that programs print.
            1 | 2 => {
                let bits = (0..4).fold(0_u64, |bits, _| (bits << 16) | u64::try_from(self.below(1 << 16)).unwrap());
                let double = f64::from_bits(bits);
                if double.is_finite() { format!("{double:e}") } else { format!("{sign}{}.{}", self.digits(3), self.digits(13)) }
            }
            _ if self.below(3) == 0 => self.one_of(WILD_NUMBERS),
            _ => format!("{sign}{}.{}e-{exponent}", self.digits(1), self.digits(16)),
        }
    }

    fn text(&mut self) -> String {
        if self.below(3) == 0 {
            return self.one_of(TEXTS);
        }
        let length = self.below(12);
        let characters = (0..length).map(|_| {
            let limit = [0x80, 0x800, 0x1_0000, 0x11_0000][self.below(4)];
            char::from_u32(u32::try_from(self.below(limit)).unwrap()).unwrap_or('\u{fffd}')
        });
        super::json::quoted(&characters.collect::<String>())
    }
}
