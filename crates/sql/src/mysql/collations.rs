//! MySQL's collations of Unicode 9, and the nearest that MariaDB has: those of Unicode 14 that do not pad.
//!
//! None of MySQL's pads, so that `'a'` and `'a '` differ on both sides. What differs is the order, and now and then
//! what is equal, of characters that came after Unicode 9 or whose weight has changed since; of Japanese and
//! Chinese, whose characters MySQL orders by their readings and MariaDB by their codes; and of languages for which
//! MariaDB has no rules of their own, as the table shows. `utf8mb4_0900_bin` compares codes in both.

/// MySQL's name for a language, and MariaDB's for the rules that are nearest; of both without one those of all
/// languages.
const LANGUAGES: [(&str, &str); 31] = [
    ("", ""),
    ("bg", ""),
    ("bs", "croatian"),
    ("cs", "czech"),
    ("da", "danish"),
    ("de_pb", "german2"),
    ("eo", "esperanto"),
    ("es", "spanish"),
    ("es_trad", "spanish2"),
    ("et", "estonian"),
    ("gl", "spanish"),
    ("hr", "croatian"),
    ("hu", "hungarian"),
    ("is", "icelandic"),
    ("ja", ""),
    ("la", "roman"),
    ("lt", "lithuanian"),
    ("lv", "latvian"),
    ("mn_cyrl", ""),
    ("nb", "danish"),
    ("nn", "danish"),
    ("pl", "polish"),
    ("ro", "romanian"),
    ("ru", ""),
    ("sk", "slovak"),
    ("sl", "slovenian"),
    ("sr_latn", "croatian"),
    ("sv", "swedish"),
    ("tr", "turkish"),
    ("vi", "vietnamese"),
    ("zh", ""),
];

/// The collation of MariaDB that takes the place of one of MySQL; None: both have it.
pub fn nearest(name: &str) -> Option<Result<String, ()>> {
    let name = name.to_ascii_lowercase();
    let rest = name.strip_prefix("utf8mb4_")?;
    let (language, kind) = match rest.strip_prefix("0900_") {
        Some(kind) => ("", kind),
        None => rest.split_once("_0900_")?,
    };
    if (language, kind) == ("", "bin") {
        return Some(Ok("utf8mb4_nopad_bin".into()));
    }
    let rules = LANGUAGES.iter().find(|(theirs, _)| *theirs == language).map(|(_, ours)| *ours);
    // Kana are told apart in Japanese, as they are in others that tell accents apart.
    let kind = match kind {
        "ai_ci" | "as_ci" | "as_cs" => Some(kind),
        "as_cs_ks" if language == "ja" => Some("as_cs"),
        _ => None,
    };
    Some(rules.zip(kind).ok_or(()).map(|(rules, kind)| match rules {
        "" => format!("utf8mb4_uca1400_nopad_{kind}"),
        rules => format!("utf8mb4_uca1400_{rules}_nopad_{kind}"),
    }))
}

/// The languages of the collations from 256 on, which tell neither accents nor letters' cases apart, and of those from
/// 279 on, which do, in MySQL's order; none where a number is not in use.
const NUMBERED: [Option<&str>; 22] = [
    Some("de_pb"),
    Some("is"),
    Some("lv"),
    Some("ro"),
    Some("sl"),
    Some("pl"),
    Some("et"),
    Some("es"),
    Some("sv"),
    Some("tr"),
    Some("cs"),
    Some("da"),
    Some("lt"),
    Some("sk"),
    Some("es_trad"),
    Some("la"),
    None,
    Some("eo"),
    Some("hu"),
    Some("hr"),
    None,
    Some("vi"),
];
/// All from 303 on.
const LATER: [(u16, &str); 21] = [
    (303, "ja_0900_as_cs"),
    (304, "ja_0900_as_cs_ks"),
    (305, "0900_as_ci"),
    (306, "ru_0900_ai_ci"),
    (307, "ru_0900_as_cs"),
    (308, "zh_0900_as_cs"),
    (309, "0900_bin"),
    (310, "nb_0900_ai_ci"),
    (311, "nb_0900_as_cs"),
    (312, "nn_0900_ai_ci"),
    (313, "nn_0900_as_cs"),
    (314, "sr_latn_0900_ai_ci"),
    (315, "sr_latn_0900_as_cs"),
    (316, "bs_0900_ai_ci"),
    (317, "bs_0900_as_cs"),
    (318, "bg_0900_ai_ci"),
    (319, "bg_0900_as_cs"),
    (320, "gl_0900_ai_ci"),
    (321, "gl_0900_as_cs"),
    (322, "mn_cyrl_0900_ai_ci"),
    (323, "mn_cyrl_0900_as_cs"),
];

/// The same of a collation by its number; None: it is none of Unicode 9.
pub fn nearest_of_number(number: u16) -> Option<String> {
    let of = |from: u16, kind: &str| {
        let language = NUMBERED.get(usize::from(number - from)).copied().flatten()?;
        Some(format!("utf8mb4_{language}_0900_{kind}"))
    };
    let name = match number {
        255 => Some("utf8mb4_0900_ai_ci".to_string()),
        278 => Some("utf8mb4_0900_as_cs".to_string()),
        256..=277 => of(256, "ai_ci"),
        279..=300 => of(279, "as_cs"),
        _ => {
            let found = LATER.iter().find(|(other, _)| *other == number);
            found.map(|(_, name)| format!("utf8mb4_{name}"))
        }
    };
    nearest(&name?)?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_of_unicode_9_have_a_nearest_one() {
        for (theirs, ours) in [
            ("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"),
            ("UTF8MB4_0900_AS_CS", "utf8mb4_uca1400_nopad_as_cs"),
            ("utf8mb4_0900_bin", "utf8mb4_nopad_bin"),
            ("utf8mb4_de_pb_0900_as_cs", "utf8mb4_uca1400_german2_nopad_as_cs"),
            ("utf8mb4_es_trad_0900_ai_ci", "utf8mb4_uca1400_spanish2_nopad_ai_ci"),
            ("utf8mb4_ja_0900_as_cs_ks", "utf8mb4_uca1400_nopad_as_cs"),
        ] {
            assert_eq!(nearest(theirs), Some(Ok(ours.to_string())), "{theirs}");
        }
        for both in ["utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_unicode_520_ci", "x", "utf8mb4_"] {
            assert_eq!(nearest(both), None, "{both}");
        }
        for unknown in ["utf8mb4_xx_0900_ai_ci", "utf8mb4_0900_ci_ai", "utf8mb4_da_0900_bin"] {
            assert_eq!(nearest(unknown), Some(Err(())), "{unknown}");
        }
    }

    #[test]
    fn numbers_have_one_as_well() {
        for (number, ours) in [
            (255, Some("utf8mb4_uca1400_nopad_ai_ci")),
            (267, Some("utf8mb4_uca1400_danish_nopad_ai_ci")),
            (290, Some("utf8mb4_uca1400_danish_nopad_as_cs")),
            (300, Some("utf8mb4_uca1400_vietnamese_nopad_as_cs")),
            (309, Some("utf8mb4_nopad_bin")),
            (320, Some("utf8mb4_uca1400_spanish_nopad_ai_ci")),
            (272, None),
            (301, None),
            (45, None),
            (1000, None),
        ] {
            assert_eq!(nearest_of_number(number).as_deref(), ours, "{number}");
        }
    }
}
