//! The words that mean money.
//!
//! The base lists are compiled in and cannot be shortened; a rule pack only adds (D10). Matching is on
//! letters and digits alone, so spaces, `#`, full-width forms and decoration do not hide a word.

/// What a matching control would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Opens the checkout; never needed to collect.
    Buy,
    /// Pays, or chooses how.
    Payment,
    /// Creates the order.
    Submit,
}

const SUBMIT: [&str; 7] = ["提交订单", "确认下单", "立即下单", "去下单", "0元下单", "确认订单", "提交并支付"];

const PAYMENT: [&str; 17] = [
    "立即支付",
    "去支付",
    "确认支付",
    "继续支付",
    "支付订单",
    "免密支付",
    "更换支付方式",
    "极速支付",
    "一键支付",
    "刷脸支付",
    "指纹支付",
    "立即付款",
    "去付款",
    "确认付款",
    "继续付款",
    "开通先用后付",
    "同意协议并支付",
];

const BUY: [&str; 22] = [
    "发起拼单",
    "单独购买",
    "免拼购买",
    "立即购买",
    "马上抢",
    "领券购买",
    "现在购买",
    "开药购买",
    "直接拼成",
    "去拼单",
    "参与拼单",
    "参与可直接成团",
    "继续拼单",
    "立即拼单",
    "一键拼单",
    "立即抢购",
    "去抢购",
    "再次购买",
    "再买一单",
    "确认购买",
    "去购买",
    "一次选多款",
];

/// Patterns a rule pack adds to the compiled-in ones.
#[derive(Clone, Debug, Default)]
pub struct ExtraPatterns {
    payment: Vec<String>,
    submit: Vec<String>,
    buy: Vec<String>,
}

impl ExtraPatterns {
    /// Nothing beyond the compiled-in patterns.
    pub fn none() -> ExtraPatterns {
        ExtraPatterns::default()
    }

    /// Words that pay. A word without a letter or digit is ignored: it would match everything.
    #[must_use]
    pub fn with_payment<S: AsRef<str>>(mut self, words: impl IntoIterator<Item = S>) -> ExtraPatterns {
        add(&mut self.payment, words);
        self
    }

    /// Words that create an order.
    #[must_use]
    pub fn with_submit<S: AsRef<str>>(mut self, words: impl IntoIterator<Item = S>) -> ExtraPatterns {
        add(&mut self.submit, words);
        self
    }

    /// Words of buy buttons.
    #[must_use]
    pub fn with_buy<S: AsRef<str>>(mut self, words: impl IntoIterator<Item = S>) -> ExtraPatterns {
        add(&mut self.buy, words);
        self
    }

    /// The gravest kind a normalised text matches.
    pub(super) fn kind_of(&self, normal: &str) -> Option<Kind> {
        if normal.is_empty() {
            return None;
        }
        let hit = |base: &[&str], more: &[String]| {
            base.iter().any(|word| normal.contains(word)) || more.iter().any(|word| normal.contains(word.as_str()))
        };
        if hit(&SUBMIT, &self.submit) {
            Some(Kind::Submit)
        } else if hit(&PAYMENT, &self.payment) {
            Some(Kind::Payment)
        } else if hit(&BUY, &self.buy) {
            Some(Kind::Buy)
        } else {
            None
        }
    }
}

fn add<S: AsRef<str>>(list: &mut Vec<String>, words: impl IntoIterator<Item = S>) {
    list.extend(words.into_iter().map(|word| normalise(word.as_ref())).filter(|word| !word.is_empty()));
}

/// Letters and digits only: full-width to ASCII, the few compatibility forms of our own words unfolded,
/// everything else (spaces, zero-width marks, punctuation, signs, emoji) dropped.
pub(super) fn normalise(text: &str) -> String {
    text.chars()
        .filter_map(|c| {
            let c = match c {
                '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
                '\u{2F40}' => '支',
                '\u{2F74}' => '立',
                '\u{2F64}' => '用',
                '\u{2F00}' => '一',
                '\u{2F6D}' => '目',
                '\u{2FBA}' => '馬',
                '馬' => '马',
                '單' => '单',
                '購' => '购',
                '買' => '买',
                '訂' => '订',
                '確' => '确',
                '認' => '认',
                '搶' => '抢',
                '領' => '领',
                '繼' => '继',
                '續' => '续',
                '發' => '发',
                '開' => '开',
                '參' => '参',
                '與' => '与',
                '後' => '后',
                '換' => '换',
                '極' => '极',
                '臉' => '脸',
                '紋' => '纹',
                '協' => '协',
                '議' => '议',
                '並' => '并',
                '藥' => '药',
                '獨' => '独',
                '現' => '现',
                '團' => '团',
                other => other,
            };
            c.is_alphanumeric().then_some(c)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_word_survives_its_own_normalisation() {
        for word in SUBMIT.iter().chain(&PAYMENT).chain(&BUY) {
            assert_eq!(&normalise(word), word, "a word changed by normalise could never match");
        }
    }

    #[test]
    fn dressed_up_words_still_match() {
        let none = ExtraPatterns::none();
        let rows = [
            ("spaces", "提 交 订 单 ¥69", Some(Kind::Submit)),
            ("hash", "#提交#订单", Some(Kind::Submit)),
            ("zero width", "立\u{200B}即\u{FEFF}支付", Some(Kind::Payment)),
            ("full width digits", "０元下单", Some(Kind::Submit)),
            ("kangxi radical", "立即\u{2F40}付", Some(Kind::Payment)),
            ("traditional", "提交訂單", Some(Kind::Submit)),
            ("placeholder", "选择颜色后，立即支付", Some(Kind::Payment)),
            ("glued", "¥208免拼购买", Some(Kind::Buy)),
            ("newline", "去\n支付", Some(Kind::Payment)),
            ("people paid", "¥4162人付款", None),
            ("group price", "拼单价", None),
            ("browse first", "先去逛逛", None),
            ("nothing", "", None),
            ("signs only", "¥ · #", None),
        ];
        for (name, text, want) in rows {
            assert_eq!(none.kind_of(&normalise(text)), want, "row {name}: {text:?}");
        }
    }

    #[test]
    fn extra_patterns_only_add() {
        let extra = ExtraPatterns::none().with_payment(["马上\u{3000}付"]).with_buy(["  ", "#"]);
        assert_eq!(extra.kind_of(&normalise("马上付¥3")), Some(Kind::Payment), "an added word must match");
        assert_eq!(extra.kind_of(&normalise("提交订单")), Some(Kind::Submit), "the base must stay");
        assert_eq!(extra.kind_of(&normalise("收藏")), None, "a blank word must not match everything");
    }
}
