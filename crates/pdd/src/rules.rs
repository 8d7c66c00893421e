//! The rule pack: every Pinduoduo text the room looks for, read from `resources/pdd/rules.toml`.
//!
//! A pack can only make the tap guard stricter: its `guard` words are added to those compiled into `device` (D10).

use regex::Regex;
use serde::Deserialize;

use cmautobuy_device::ExtraPatterns;

use crate::text::fold;

const BUILTIN: &str = include_str!("../../../resources/pdd/rules.toml");
/// The pack format this programme reads.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Why a rule pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulePackError {
    #[error("the rule pack is not readable")]
    Toml(#[source] toml::de::Error),
    #[error("the rule pack has schema_version {0}, this programme reads {SCHEMA_VERSION}")]
    Schema(u32),
    #[error("the rule pack's pattern `{pattern}` is not a regular expression")]
    Pattern {
        pattern: String,
        #[source]
        source: regex::Error,
    },
    #[error("the rule pack leaves `{0}` empty")]
    Empty(&'static str),
}

/// A checked rule pack.
#[derive(Debug, Clone)]
pub struct RulePack {
    pub(crate) version: String,
    pub(crate) packages: Vec<String>,
    pub(crate) extra: ExtraPatterns,
    pub(crate) screens: Screens,
    pub(crate) walls: Walls,
    pub(crate) unavailable: Unavailable,
    pub(crate) popups: Vec<PopupRule>,
    pub(crate) leave: Words,
    pub(crate) goods: GoodsRules,
    pub(crate) sheet: SheetRules,
    pub(crate) price: PriceWords,
}

impl RulePack {
    /// The pack shipped with the programme.
    ///
    /// # Panics
    /// Never in a build whose tests pass: the text is part of the programme.
    pub fn builtin() -> Self {
        Self::parse(BUILTIN).expect("the shipped rule pack is tested")
    }

    /// Reads a pack.
    ///
    /// # Errors
    /// [`RulePackError`] when it is not TOML of this format, a pattern is broken, or something needed is empty.
    pub fn parse(toml: &str) -> Result<Self, RulePackError> {
        let raw: RawPack = toml::from_str(toml).map_err(RulePackError::Toml)?;
        if raw.schema_version != SCHEMA_VERSION {
            return Err(RulePackError::Schema(raw.schema_version));
        }
        raw.build()
    }

    /// The pack's own version, for the record of a run.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Packages of the app.
    pub fn packages(&self) -> &[String] {
        &self.packages
    }

    /// What the pack adds to the tap guard.
    pub fn extra_patterns(&self) -> &ExtraPatterns {
        &self.extra
    }

    pub(crate) fn is_pdd(&self, package: &str) -> bool {
        self.packages.iter().any(|one| one == package)
    }
}

/// A list of folded texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words(Vec<String>);

impl Words {
    fn of(raw: Vec<String>) -> Self {
        Self(raw.iter().map(|one| fold(one)).filter(|one| !one.is_empty()).collect())
    }

    pub(crate) fn has(&self, folded: &str) -> bool {
        self.0.iter().any(|one| one == folded)
    }

    pub(crate) fn found_in(&self, folded: &str) -> bool {
        self.0.iter().any(|one| folded.contains(one.as_str()))
    }

    pub(crate) fn ends(&self, folded: &str) -> bool {
        self.0.iter().any(|one| folded.ends_with(one.as_str()))
    }

    pub(crate) fn starts(&self, folded: &str) -> bool {
        self.0.iter().any(|one| folded.starts_with(one.as_str()))
    }

    /// What is left behind the longest matching start.
    pub(crate) fn strip_start<'t>(&self, folded: &'t str) -> Option<&'t str> {
        let longest = self.0.iter().filter(|one| folded.starts_with(one.as_str())).max_by_key(|one| one.len())?;
        folded.strip_prefix(longest.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// One group of an anchor set: whole labels or parts of labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    pub(crate) exact: Words,
    pub(crate) contains: Words,
}

impl Texts {
    pub(crate) fn matches(&self, folded: &str) -> bool {
        self.exact.has(folded) || self.contains.found_in(folded)
    }
}

pub(crate) type AnchorSets = Vec<Vec<Texts>>;

#[derive(Debug, Clone)]
pub(crate) struct Screens {
    pub(crate) goods: AnchorSets,
    pub(crate) sku_sheet: AnchorSets,
    pub(crate) abandon_popup: AnchorSets,
    pub(crate) home: AnchorSets,
    pub(crate) order_list: AnchorSets,
}

#[derive(Debug, Clone)]
pub(crate) struct Walls {
    pub(crate) risk: Texts,
    pub(crate) login: Texts,
    pub(crate) login_activities: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Unavailable {
    pub(crate) sold_out: Texts,
    pub(crate) removed: Texts,
    pub(crate) network: Texts,
}

#[derive(Debug, Clone)]
pub(crate) struct PopupRule {
    pub(crate) name: String,
    pub(crate) all: Vec<Texts>,
    pub(crate) close: Words,
}

#[derive(Debug, Clone)]
pub(crate) struct GoodsRules {
    pub(crate) title_ids: Vec<String>,
    pub(crate) sales: Vec<Regex>,
    pub(crate) not_sales: Words,
    pub(crate) sales_glued: Regex,
    pub(crate) reviews: Vec<Regex>,
    pub(crate) enter_shop: Words,
    pub(crate) enter_shop_ids: Vec<String>,
    pub(crate) shop_suffixes: Words,
    pub(crate) not_shop: Vec<Regex>,
    pub(crate) sku_entry: Words,
    pub(crate) not_entry: Words,
    pub(crate) group_buttons: Words,
    pub(crate) single_buttons: Words,
}

#[derive(Debug, Clone)]
pub(crate) struct SheetRules {
    pub(crate) image_ids: Vec<String>,
    pub(crate) image: Words,
    pub(crate) select_ids: Vec<String>,
    pub(crate) select_prefixes: Words,
    pub(crate) chosen_prefixes: Words,
    pub(crate) choose_prefixes: Words,
    pub(crate) content_ids: Vec<String>,
    pub(crate) close: Words,
    pub(crate) payment_row: Words,
    pub(crate) submit: Words,
    pub(crate) enlarge: Words,
    pub(crate) not_chip: Words,
    pub(crate) known_names: Words,
    pub(crate) not_names: Words,
    pub(crate) color_names: Vec<Regex>,
    pub(crate) size_names: Vec<Regex>,
    pub(crate) sold_out: Words,
    pub(crate) sold_out_unless: Words,
    pub(crate) stock_hint: Regex,
}

impl SheetRules {
    /// Whether a label says that its value is sold out; 即将卖完 does not.
    pub(crate) fn says_sold_out(&self, folded: &str) -> bool {
        self.sold_out.found_in(folded) && !self.sold_out_unless.found_in(folded)
    }
}

/// The words that tell a price from other amounts.
#[derive(Debug, Clone)]
pub struct PriceWords {
    pub(crate) not_price_before: Words,
    pub(crate) price_before: Words,
    pub(crate) open_before: Words,
    pub(crate) open_after: Words,
    pub(crate) list_before: Words,
    pub(crate) glued_units: Words,
}

impl RulePack {
    /// The words [`crate::price`] needs.
    pub fn price_words(&self) -> &PriceWords {
        &self.price
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPack {
    schema_version: u32,
    pack_version: String,
    packages: Vec<String>,
    guard: RawGuard,
    screens: RawScreens,
    walls: RawWalls,
    unavailable: RawUnavailable,
    #[serde(default)]
    popups: Vec<RawPopup>,
    abandon: RawAbandon,
    goods: RawGoods,
    sheet: RawSheet,
    price: RawPrice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGuard {
    #[serde(default)]
    payment: Vec<String>,
    #[serde(default)]
    submit: Vec<String>,
    #[serde(default)]
    buy: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTexts {
    #[serde(default)]
    exact: Vec<String>,
    #[serde(default)]
    contains: Vec<String>,
}

impl RawTexts {
    fn build(self) -> Texts {
        Texts { exact: Words::of(self.exact), contains: Words::of(self.contains) }
    }
}

type RawSets = Vec<Vec<RawTexts>>;

fn sets(raw: RawSets, name: &'static str) -> Result<AnchorSets, RulePackError> {
    let built: AnchorSets = raw.into_iter().map(|set| set.into_iter().map(RawTexts::build).collect()).collect();
    // An empty set would be on every screen.
    if built.is_empty() || built.iter().any(Vec::is_empty) { Err(RulePackError::Empty(name)) } else { Ok(built) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScreens {
    goods: RawSets,
    sku_sheet: RawSets,
    abandon_popup: RawSets,
    home: RawSets,
    order_list: RawSets,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWalls {
    risk: RawTexts,
    login: RawLogin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLogin {
    exact: Vec<String>,
    contains: Vec<String>,
    activities: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUnavailable {
    sold_out: RawTexts,
    removed: RawTexts,
    network: RawTexts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPopup {
    name: String,
    all: Vec<RawTexts>,
    #[serde(default)]
    close: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAbandon {
    leave: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGoods {
    title_ids: Vec<String>,
    sales: Vec<String>,
    not_sales: Vec<String>,
    sales_glued: String,
    reviews: Vec<String>,
    enter_shop: Vec<String>,
    enter_shop_ids: Vec<String>,
    shop_suffixes: Vec<String>,
    not_shop: Vec<String>,
    sku_entry: Vec<String>,
    not_entry: Vec<String>,
    group_buttons: Vec<String>,
    single_buttons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSheet {
    image_ids: Vec<String>,
    image: Vec<String>,
    select_ids: Vec<String>,
    select_prefixes: Vec<String>,
    chosen_prefixes: Vec<String>,
    choose_prefixes: Vec<String>,
    content_ids: Vec<String>,
    close: Vec<String>,
    payment_row: Vec<String>,
    submit: Vec<String>,
    enlarge: Vec<String>,
    not_chip: Vec<String>,
    known_names: Vec<String>,
    not_names: Vec<String>,
    color_names: Vec<String>,
    size_names: Vec<String>,
    sold_out: Vec<String>,
    sold_out_unless: Vec<String>,
    stock_hint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrice {
    not_price_before: Vec<String>,
    price_before: Vec<String>,
    open_before: Vec<String>,
    open_after: Vec<String>,
    list_before: Vec<String>,
    glued_units: Vec<String>,
}

fn pattern(text: &str) -> Result<Regex, RulePackError> {
    Regex::new(text).map_err(|source| RulePackError::Pattern { pattern: text.to_owned(), source })
}

fn patterns(texts: &[String]) -> Result<Vec<Regex>, RulePackError> {
    texts.iter().map(|one| pattern(one)).collect()
}

impl RawPack {
    fn build(self) -> Result<RulePack, RulePackError> {
        if self.packages.is_empty() {
            return Err(RulePackError::Empty("packages"));
        }
        if self.goods.sku_entry.is_empty() {
            return Err(RulePackError::Empty("goods.sku_entry"));
        }
        let mut popups = Vec::with_capacity(self.popups.len());
        for popup in self.popups {
            if popup.all.is_empty() {
                return Err(RulePackError::Empty("popups.all"));
            }
            popups.push(PopupRule {
                name: popup.name,
                all: popup.all.into_iter().map(RawTexts::build).collect(),
                close: Words::of(popup.close),
            });
        }
        let goods = self.goods;
        let sheet = self.sheet;
        Ok(RulePack {
            version: self.pack_version,
            packages: self.packages,
            extra: ExtraPatterns::none().with_payment(self.guard.payment).with_submit(self.guard.submit).with_buy(self.guard.buy),
            screens: Screens {
                goods: sets(self.screens.goods, "screens.goods")?,
                sku_sheet: sets(self.screens.sku_sheet, "screens.sku_sheet")?,
                abandon_popup: sets(self.screens.abandon_popup, "screens.abandon_popup")?,
                home: sets(self.screens.home, "screens.home")?,
                order_list: sets(self.screens.order_list, "screens.order_list")?,
            },
            walls: Walls {
                risk: self.walls.risk.build(),
                login: Texts { exact: Words::of(self.walls.login.exact), contains: Words::of(self.walls.login.contains) },
                login_activities: self.walls.login.activities,
            },
            unavailable: Unavailable {
                sold_out: self.unavailable.sold_out.build(),
                removed: self.unavailable.removed.build(),
                network: self.unavailable.network.build(),
            },
            popups,
            leave: Words::of(self.abandon.leave),
            goods: GoodsRules {
                title_ids: goods.title_ids,
                sales: patterns(&goods.sales)?,
                not_sales: Words::of(goods.not_sales),
                sales_glued: pattern(&goods.sales_glued)?,
                reviews: patterns(&goods.reviews)?,
                enter_shop: Words::of(goods.enter_shop),
                enter_shop_ids: goods.enter_shop_ids,
                shop_suffixes: Words::of(goods.shop_suffixes),
                not_shop: patterns(&goods.not_shop)?,
                sku_entry: Words::of(goods.sku_entry),
                not_entry: Words::of(goods.not_entry),
                group_buttons: Words::of(goods.group_buttons),
                single_buttons: Words::of(goods.single_buttons),
            },
            sheet: SheetRules {
                image_ids: sheet.image_ids,
                image: Words::of(sheet.image),
                select_ids: sheet.select_ids,
                select_prefixes: Words::of(sheet.select_prefixes),
                chosen_prefixes: Words::of(sheet.chosen_prefixes),
                choose_prefixes: Words::of(sheet.choose_prefixes),
                content_ids: sheet.content_ids,
                close: Words::of(sheet.close),
                payment_row: Words::of(sheet.payment_row),
                submit: Words::of(sheet.submit),
                enlarge: Words::of(sheet.enlarge),
                not_chip: Words::of(sheet.not_chip),
                known_names: Words::of(sheet.known_names),
                not_names: Words::of(sheet.not_names),
                color_names: patterns(&sheet.color_names)?,
                size_names: patterns(&sheet.size_names)?,
                sold_out: Words::of(sheet.sold_out),
                sold_out_unless: Words::of(sheet.sold_out_unless),
                stock_hint: pattern(&sheet.stock_hint)?,
            },
            price: PriceWords {
                not_price_before: Words::of(self.price.not_price_before),
                price_before: Words::of(self.price.price_before),
                open_before: Words::of(self.price.open_before),
                open_after: Words::of(self.price.open_after),
                list_before: Words::of(self.price.list_before),
                glued_units: Words::of(self.price.glued_units),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILTIN, RulePack, RulePackError};

    #[test]
    fn the_shipped_pack_reads() {
        let pack = RulePack::builtin();
        assert!(pack.is_pdd("com.xunmeng.pinduoduo"), "the mainland package is the one on every phone");
        assert!(!pack.is_pdd("com.android.systemui"), "a notification is not the app");
        assert!(!pack.version().is_empty(), "a run records which pack read its pages");
    }

    #[test]
    fn a_broken_pack_is_refused_with_its_reason() {
        type Row = (&'static str, String, fn(&RulePackError) -> bool);
        let rows: [Row; 4] = [
            ("not toml", "schema_version = ".into(), |e| matches!(e, RulePackError::Toml(_))),
            ("another format", BUILTIN.replacen("schema_version = 1", "schema_version = 9", 1), |e| matches!(e, RulePackError::Schema(9))),
            ("broken pattern", BUILTIN.replacen("stock_hint = '^", "stock_hint = '^(", 1), |e| matches!(e, RulePackError::Pattern { .. })),
            (
                "no packages",
                BUILTIN.replacen(r#"packages = ["com.xunmeng.pinduoduo", "com.xunmeng.pinduoduo.hos"]"#, "packages = []", 1),
                |e| matches!(e, RulePackError::Empty("packages")),
            ),
        ];
        for (name, text, want) in rows {
            let error = RulePack::parse(&text).expect_err("a broken pack must not be used");
            assert!(want(&error), "the reason must be told apart: {name}: {error}");
        }
    }
}
