//! A request from its head to its answer: who asks is looked at, the body is read or begun, and a thread does the rest.

use crate::asked::Asked;
use crate::incoming::{Arriving, Source, LINGERING, MOST_WHOLE};
use crate::problem::Problem;
use crate::reply::{of_problem, Reply, ReplyBody};
use crate::routes::{self, Route, Takes};
use crate::serve::Site;
use hyper::body::Incoming;
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The answer to a request, whatever it is.
pub(crate) async fn respond(site: Arc<Site>, request: Request<Incoming>) -> Response<ReplyBody> {
    match answer(&site, request).await {
        Ok(response) => response,
        Err(problem) => {
            site.log(&problem);
            of_problem(&problem)
        }
    }
}

async fn answer(site: &Arc<Site>, request: Request<Incoming>) -> Result<Response<ReplyBody>, Problem> {
    let (head, body) = request.into_parts();
    let mut body = Arriving::new(body, site.patience);
    let waits = head.headers.contains_key(EXPECT);
    let (route, mut asked) = match admit(site, head, body.announced()) {
        Ok(admitted) => admitted,
        Err(problem) => {
            // Who waits to be told to go on has sent nothing.
            if !waits {
                body.discard().await;
            }
            return Err(problem);
        }
    };
    let (begin, is_all) = body.begin().await.map_err(|cut| cut.problem())?;
    let (mut place, mut rest) = (None, None);
    asked.body = if is_all {
        Source::whole(begin)
    } else if route.takes == Takes::Bytes {
        // Each of them takes some megabytes. Who waits here is not read from.
        place = site.streams.acquire().await.ok();
        body.go_on();
        let (source, sender) = Source::streamed(begin);
        rest = Some(body.send(sender));
        source
    } else {
        body.discard().await;
        return Err(too_large());
    };
    let (head, mut answered) = oneshot::channel();
    let of_thread = Arc::clone(site);
    let work = move || {
        let mut reply = Reply::new(head);
        match (route.handler)(&of_thread, &mut asked, &mut reply) {
            Ok(()) => reply.finish(),
            Err(problem) => {
                of_thread.log(&problem);
                reply.fail(&problem);
            }
        }
    };
    drop(tokio::task::spawn_blocking(work));
    let answered = match rest {
        None => answered.await,
        Some(rest) => {
            let mut rest = pin!(rest);
            tokio::select! {
                biased;
                early = &mut answered => {
                    let _ = timeout(LINGERING, rest).await;
                    early
                }
                () = &mut rest => answered.await,
            }
        }
    };
    drop(place);
    // A thread that ends without an answer has panicked, and that is on standard error.
    answered.map_err(|_| Problem::inside(format!("{} {} failed", route.method, route.path)))
}

/// Looks at all that is known before the body.
fn admit(site: &Site, head: Parts, announced: Option<u64>) -> Result<(&'static Route, Asked), Problem> {
    if head.uri.path() != routes::HEALTH {
        site.door.admit(head.version, &head.headers)?;
    }
    let (route, segments) = routes::find(&head.method, head.uri.path())?;
    if route.takes != Takes::Bytes && announced.is_some_and(|bytes| bytes > MOST_WHOLE as u64) {
        return Err(too_large());
    }
    let asked = Asked::new(head.method, head.headers, segments, head.uri.query().unwrap_or_default())?;
    Ok((route, asked))
}

fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body here has {MOST_WHOLE} bytes at most"))
}
