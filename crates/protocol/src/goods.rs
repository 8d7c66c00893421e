//! Goods links. A task's `goods_url` must hold exactly one numeric goods id, else it is a data error (D10).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A Pinduoduo goods id: 1 to 20 ASCII digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GoodsId(String);

/// Why no goods id could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGoods {
    #[error("goods id must be 1 to 20 digits")]
    Id,
    #[error("goods link holds no goods_id")]
    NoId,
    #[error("goods link holds {0} different goods ids")]
    ManyIds(usize),
}

impl GoodsId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The canonical link of this goods id.
    pub fn url(&self) -> String {
        format!("https://mobile.yangkeduo.com/goods.html?goods_id={}", self.0)
    }

    /// Reads the goods id out of a link: every `goods_id=` parameter must name the same one.
    ///
    /// # Errors
    /// [`BadGoods`] when there is none, more than one, or it is not a number.
    pub fn from_url(url: &str) -> Result<Self, BadGoods> {
        let query = url.split_once('?').map_or("", |(_, rest)| rest);
        let mut ids: Vec<&str> =
            query.split(['&', '#', '?']).filter_map(|pair| pair.strip_prefix("goods_id=")).map(|value| value.trim()).collect();
        ids.sort_unstable();
        ids.dedup();
        match ids.as_slice() {
            [] => Err(BadGoods::NoId),
            [one] => one.parse(),
            many => Err(BadGoods::ManyIds(many.len())),
        }
    }
}

impl FromStr for GoodsId {
    type Err = BadGoods;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| Self(text.to_owned())).ok_or(BadGoods::Id)
    }
}
impl TryFrom<String> for GoodsId {
    type Error = BadGoods;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
impl From<GoodsId> for String {
    fn from(id: GoodsId) -> Self {
        id.0
    }
}
impl fmt::Display for GoodsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
