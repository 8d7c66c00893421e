//! `task` commands. They read files and name users; every rule is in the library.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use cmautobuy_protocol::admin::{CreateTask, ImportReport, RowOutcome};
use cmautobuy_server::{CloseTask, MAX_IMAGE_BYTES, MAX_LIST_BYTES, ReleaseHold, Server, TaskQuery, list_template};

use crate::account::named;
use crate::cli::{Filter, Language, NewTask, TaskCommand};
use crate::out;

pub(crate) fn run(server: &Server, command: TaskCommand) -> Result<(), Box<dyn Error>> {
    let admin = server.admin();
    match command {
        TaskCommand::Create(new) => {
            let key = new.key.clone();
            out::json(&admin.create_task(&asked(*new), key.as_ref())?)
        }
        TaskCommand::Import { file, dry_run, key } => {
            let report = admin.import_tasks(&bytes(&file, MAX_LIST_BYTES)?, dry_run, key.as_ref())?;
            show(&report)
        }
        TaskCommand::Template { language } => template(language),
        TaskCommand::List(filter) => {
            let Filter { status, task_type, mode, device, user, external_ref, goods_id, title, from, before, .. } = *filter;
            let query = TaskQuery {
                status,
                task_type: task_type.map(Into::into),
                execution_mode: mode.map(Into::into),
                device_id: device,
                user_id: user.map(|name| named(admin, &name)).transpose()?,
                external_ref,
                goods_id,
                title,
                created_from: from,
                created_before: before,
                cancel_requested: filter.cancel_requested,
                order_may_exist: filter.order_may_exist,
                held: filter.held,
                cursor: filter.page.cursor,
                limit: Some(filter.page.limit),
            };
            out::tasks(&admin.list(&query)?)
        }
        TaskCommand::Show { id } => out::json(&admin.detail(id)?),
        TaskCommand::Cancel { id } => out::json(&admin.cancel(id)?),
        TaskCommand::Close { id, version, reason, order_checked } => {
            out::json(&admin.close(id, &CloseTask { reason, expected_version: version, order_checked })?)
        }
        TaskCommand::ReleaseHold { id, version, order_checked } => {
            out::json(&admin.release_hold(id, &ReleaseHold { expected_version: version, order_checked })?)
        }
        TaskCommand::SetImage { id, file } => out::json(&admin.put_reference_image(id, &bytes(&file, MAX_IMAGE_BYTES)?)?),
        TaskCommand::RemoveImage { id } => Ok(admin.delete_reference_image(id)?),
    }
}

pub(crate) fn template(language: Language) -> Result<(), Box<dyn Error>> {
    Ok(out::line(list_template(language == Language::Zh).trim_end())?)
}

fn asked(new: NewTask) -> CreateTask {
    CreateTask {
        task_type: new.task_type.into(),
        execution_mode: new.mode.into(),
        goods_url: new.goods_url,
        title: new.title,
        target_color: new.color,
        target_size: new.size,
        price_cent: new.price_cent,
        max_price_cent: new.max_price_cent,
        quantity: new.quantity,
        priority: new.priority,
        external_ref: new.external_ref,
    }
}

/// One line a refused row, then one with the numbers; failure when the list made nothing because of a row.
fn show(report: &ImportReport) -> Result<(), Box<dyn Error>> {
    for row in report.rows.iter().filter(|row| row.outcome == RowOutcome::Refused) {
        let column = row.column.as_deref().map(|name| format!(", column {name}")).unwrap_or_default();
        out::line(&format!("row {}{column}: {}", row.row, row.message.as_deref().unwrap_or("refused")))?;
    }
    for name in &report.unknown_columns {
        out::line(&format!("column {name} is not known and was passed over"))?;
    }
    if report.refused > 0 {
        return Err(format!(
            "{} of {} rows are refused, so no task was made; mend them and send the list again",
            report.refused,
            report.rows.len()
        )
        .into());
    }
    let what = match (report.dry_run, report.repeated) {
        (true, _) => "would be made",
        (false, true) => "had been made when this list was sent before",
        (false, false) => "made",
    };
    Ok(out::line(&format!("{} tasks {what}, {} were there already", report.created, report.exists))?)
}

/// A file of at most `most` bytes; a larger one is not read to its end.
fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let at_fault = |error| format!("read {} ({error})", path.display());
    let mut bytes = Vec::new();
    File::open(path).map_err(at_fault)?.take(most as u64 + 1).read_to_end(&mut bytes).map_err(at_fault)?;
    Ok(bytes)
}
