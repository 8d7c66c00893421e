//! How Pinduoduo is started, opened by a link, and ended.

use super::{Front, Model, Opened, PDD, Page, popup};
use crate::scenario::Trigger;

const LINKS: [&str; 4] = [
    "https://mobile.yangkeduo.com/",
    "http://mobile.yangkeduo.com/",
    "https://mobile.pinduoduo.com/",
    "pinduoduo://com.xunmeng.pinduoduo/",
];

impl Model {
    /// Brings Pinduoduo forward as its icon does; false when it is not installed.
    pub(crate) fn launch(&mut self) -> bool {
        if !self.installed {
            return false;
        }
        self.front = Front::Pdd;
        let fresh = self.stack.is_empty();
        if fresh {
            self.stack.push(Page::Home { scroll: 0 });
        }
        if self.walls.login && !matches!(self.top(), Some(Page::Login)) {
            self.stack.push(Page::Login);
        }
        if fresh {
            self.trigger(Trigger::Launch);
        }
        true
    }

    pub(crate) fn force_stop(&mut self) {
        self.stack.clear();
        self.layers.retain(|layer| layer.package != PDD);
        if self.front == Front::Pdd {
            self.front = Front::Launcher;
        }
    }

    /// The app dies and the system says so.
    pub(crate) fn crash(&mut self) {
        self.force_stop();
        self.front = Front::Launcher;
        self.layers.clear();
        self.layers.extend(popup("crashed"));
    }

    /// Opens a Pinduoduo link; `package` restricts who may take it.
    pub(crate) fn open_link(&mut self, url: &str, package: Option<&str>) -> Opened {
        if !self.installed || package.is_some_and(|package| package != PDD) {
            return Opened::Unresolved;
        }
        let Some(rest) = LINKS.iter().find_map(|prefix| url.strip_prefix(prefix)) else {
            return Opened::Unresolved;
        };
        let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
        let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        match page {
            "goods.html" | "goods1.html" | "goods2.html" => {
                let id = asked("goods_id").unwrap_or_default().to_owned();
                self.open_goods(&id);
            }
            "orders.html" => {
                let tab = asked("type").and_then(|tab| tab.parse().ok()).unwrap_or(0);
                self.show(Page::Orders { tab, scroll: 0 });
            }
            _ => {
                self.launch();
            }
        }
        if self.behaviour.app_chooser {
            self.raise("app_chooser");
        }
        self.trigger(Trigger::Link);
        Opened::Yes(self.screen_name())
    }

    pub(super) fn open_goods(&mut self, id: &str) {
        let mut at = self.catalogue.goods.iter().position(|one| one.goods_id == id);
        if self.walls.wrong_goods > 0 {
            self.walls.wrong_goods -= 1;
            // The next goods that can be shown, as when the app resumes where somebody else was.
            let others = 0..self.catalogue.goods.len();
            at = others.clone().chain(others).skip(at.unwrap_or(0) + 1).find(|other| {
                let one = &self.catalogue.goods[*other];
                Some(*other) != at && !one.sold_out && !one.removed
            });
        }
        let page = if self.walls.captcha {
            Page::Captcha
        } else if self.walls.risk {
            Page::Risk
        } else if self.walls.real_name {
            Page::RealName
        } else if self.walls.network {
            Page::NetworkError { goods_id: id.to_owned() }
        } else {
            match at {
                None => Page::Removed,
                Some(at) if self.catalogue.goods[at].removed => Page::Removed,
                Some(at) if self.catalogue.goods[at].sold_out => Page::SoldOut { goods: at },
                Some(at) => self.fresh_page(at),
            }
        };
        let goods = matches!(page, Page::Goods(_));
        self.show(page);
        if goods {
            self.unbind();
            self.trigger(Trigger::Goods);
        }
    }

    pub(super) fn show(&mut self, page: Page) {
        self.front = Front::Pdd;
        self.layers.clear();
        self.stack = vec![Page::Home { scroll: 0 }, if self.walls.login { Page::Login } else { page }];
    }
}
