//! Every order of the atomic steps, by loom:
//! `RUSTFLAGS='--cfg loom' cargo test --release -p beatline-heartbeat --test loom`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool as PlainBool, Ordering as PlainOrdering};
use std::task::{Poll, Wake, Waker};

use beatline_heartbeat::model::{EXPIRE_STEPS, Model, SUSPECT_STEPS};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

struct Flag(PlainBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, PlainOrdering::SeqCst);
    }
}

// The step of the expiry is published. The touch or the expiry comes first; both see the same order.
#[test]
fn touch_against_expiry() {
    loom::model(|| {
        let model = Model::new(false);
        let index = model.register(7);
        model.publish(EXPIRE_STEPS);
        let toucher = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.touch(index))
        };
        let expired = model.sweep(EXPIRE_STEPS).expired == 1;
        let touched = toucher.join().unwrap();
        assert_ne!(touched, expired, "one of both, never neither");
        assert_eq!(model.is_expired(index), expired);
        assert_eq!(model.touch(index), !expired);
        assert_eq!(model.collect().len(), usize::from(expired));
        // Who was touched has a full time-out again, and no more than that.
        assert_eq!(model.sweep(2 * EXPIRE_STEPS - 1).expired, 0);
        assert_eq!(model.sweep(2 * EXPIRE_STEPS).expired, u64::from(touched));
    });
}

// Two beats and a publication between them: the later one must not be undone by the earlier.
#[test]
fn touch_against_touch() {
    loom::model(|| {
        let model = Model::new(false);
        let index = model.register(7);
        model.publish(1);
        let early = {
            let model = Arc::clone(&model);
            thread::spawn(move || assert!(model.touch(index)))
        };
        model.publish(2);
        assert!(model.touch(index));
        early.join().unwrap();
        assert_eq!(model.sweep(EXPIRE_STEPS + 1).expired, 0, "it was touched in step 2");
        assert_eq!(model.sweep(EXPIRE_STEPS + 2).expired, 1);
    });
}

// A suspect beats while it is being declared dead, and the books of suspects balance.
#[test]
fn touch_against_suspicion_and_expiry() {
    loom::model(|| {
        let model = Model::new(true);
        let index = model.register(7);
        model.publish(SUSPECT_STEPS);
        let toucher = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.touch(index))
        };
        let suspected = model.sweep(SUSPECT_STEPS).suspects.len();
        assert!(toucher.join().unwrap());
        assert!(suspected <= 1);
        assert!(!model.is_suspect(index));
        assert_eq!(model.suspects(), 0);
        // The next suspicion of a beat in step 3 is due in step 6, before the bound that a suspect had.
        assert_eq!(model.sweep(2 * SUSPECT_STEPS).suspects.len(), 1);
        assert_eq!(model.suspects(), 1);
        assert_eq!(model.sweep(SUSPECT_STEPS + EXPIRE_STEPS).expired, 1);
        assert_eq!(model.suspects(), 0);
    });
}

// Whichever way they interleave, the sweep does not lose the bound of what was added meanwhile.
#[test]
fn add_against_sweep_bound() {
    loom::model(|| {
        let model = Model::new(false);
        let _old = model.register(1);
        model.publish(EXPIRE_STEPS);
        let adder = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.register(2))
        };
        assert_eq!(model.sweep(EXPIRE_STEPS).expired, 1);
        let new = adder.join().unwrap();
        model.publish(2 * EXPIRE_STEPS);
        assert_eq!(model.sweep(2 * EXPIRE_STEPS).expired, 1, "the new one is found when its time has come");
        assert!(model.is_expired(new));
    });
}

// A suspect that beats lowers the bound, which a sweep is just lifting.
#[test]
fn recovery_against_sweep_bound() {
    loom::model(|| {
        let model = Model::new(true);
        let index = model.register(1);
        assert_eq!(model.sweep(SUSPECT_STEPS).suspects.len(), 1);
        let other = model.register(2);
        model.publish(SUSPECT_STEPS);
        assert!(model.touch(other));
        let toucher = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.touch(index))
        };
        model.sweep(SUSPECT_STEPS);
        assert!(toucher.join().unwrap());
        assert_eq!(model.sweep(2 * SUSPECT_STEPS).suspects.len(), 2);
    });
}

// An edge is claimed before the removal, or not at all; and never with the key of whoever has the slot next.
#[test]
fn remove_against_delivery() {
    loom::model(|| {
        let model = Model::new(false);
        let index = model.register(7);
        assert_eq!(model.sweep(EXPIRE_STEPS).expired, 1);
        let removed = Arc::new(AtomicBool::new(false));
        let remover = {
            let (model, removed) = (Arc::clone(&model), Arc::clone(&removed));
            thread::spawn(move || {
                model.remove(index);
                removed.store(true, Ordering::Release);
                model.register(99)
            })
        };
        for edge in model.collect() {
            let before = removed.load(Ordering::Acquire);
            let claimed = model.claim(edge);
            assert!(claimed.is_none_or(|key| key == 7), "the key of another: {claimed:?}");
            assert!(!(before && claimed.is_some()), "reported after remove returned");
            assert_eq!(model.claim(edge), None, "twice");
        }
        let new = remover.join().unwrap();
        assert!(model.touch(new), "the one that has the slot now is untouched by it");
    });
}

// The same for a suspect edge, and for the answer of a probe.
#[test]
fn remove_against_probe() {
    loom::model(|| {
        let model = Model::new(true);
        let index = model.register(7);
        let edge = model.sweep(SUSPECT_STEPS).suspects[0];
        model.publish(SUSPECT_STEPS);
        let remover = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.remove(index);
                model.register(99)
            })
        };
        let claimed = model.claim(edge);
        assert!(claimed.is_none_or(|key| key == 7));
        model.clear(edge);
        let new = remover.join().unwrap();
        assert!(!model.is_suspect(new));
        assert_eq!(model.suspects(), 0);
        assert_eq!(model.sweep(SUSPECT_STEPS + EXPIRE_STEPS - 1).expired, 0);
        assert_eq!(model.sweep(SUSPECT_STEPS + EXPIRE_STEPS).expired, 1);
    });
}

// An edge that is found while edges are being collected is listed for the next collection.
#[test]
fn sweep_against_collection() {
    loom::model(|| {
        let model = Model::new(false);
        model.register(1);
        assert_eq!(model.sweep(EXPIRE_STEPS).expired, 1);
        model.publish(1);
        model.register(2);
        let collector = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.collect().len())
        };
        assert_eq!(model.sweep(EXPIRE_STEPS + 1).expired, 1);
        let collected = collector.join().unwrap();
        assert_eq!(collected + model.collect().len(), 2, "none is lost");
    });
}

// Whoever begins to wait while the connection expires is woken, or told at once.
#[test]
fn wait_against_expiry() {
    loom::model(|| {
        let model = Model::new(false);
        let index = model.register(7);
        let sweeper = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.sweep(EXPIRE_STEPS).expired)
        };
        let flag = Arc::new(Flag(PlainBool::new(false)));
        let answer = model.wait(index, &Waker::from(Arc::clone(&flag)), &mut None);
        assert_eq!(sweeper.join().unwrap(), 1);
        assert!(answer == Poll::Ready(true) || flag.0.load(PlainOrdering::SeqCst));
    });
}

// Whoever begins to wait while the checker shuts down is woken, or told at once.
#[test]
fn wait_against_shutdown() {
    loom::model(|| {
        let model = Model::new(false);
        let index = model.register(7);
        let closer = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.close())
        };
        let flag = Arc::new(Flag(PlainBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        let answer = model.wait(index, &waker, &mut None);
        closer.join().unwrap();
        assert!(answer == Poll::Ready(false) || flag.0.load(PlainOrdering::SeqCst));
        assert_eq!(model.wait(index, &waker, &mut None), Poll::Ready(false));
    });
}
