// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/store"
)

const (
	pruneEvery = 10 * time.Minute
	pruneBatch = 256
	// pruneRest is how much longer than its batch the pruning rests after it.
	pruneRest = 3
)

// Prune deletes the rows of a time before one, of all chains but for the newest of each, and returns how many there
// are or, with dry, would be. A signed checkpoint says where what is left begins.
func (r *Recorder) Prune(ctx context.Context, c access.Caller, before time.Time, dry bool) (n int, err error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return 0, err
	}
	if before.IsZero() || before.After(r.now()) {
		return 0, fault.InvalidField("before", "%s is not a time in the past", before.UTC().Format(time.RFC3339))
	}
	if dry {
		err := r.store.View(ctx, func(tx store.Tx) (err error) {
			n, err = tx.Audit().Count(store.AuditQuery{Until: before})
			return err
		})
		return n, err
	}
	return r.prune(ctx, before, 0)
}

// pruneNow deletes what is too old or too many, and logs what goes wrong.
func (r *Recorder) pruneNow(ctx context.Context) {
	before := r.now().Add(-r.o.Keep)
	n, err := r.prune(ctx, before, r.o.Count)
	switch {
	case err != nil && ctx.Err() == nil:
		r.log.Error("rows of the audit log that are too old or too many cannot be deleted now; it is tried again", "error", err)
	case n > 0:
		r.log.Info("rows of the audit log that were too old or too many were deleted", "rows", n)
	}
}

// prune deletes rows of before a time and, if keep is not zero, those beyond the newest so many of each chain; never
// the newest itself.
func (r *Recorder) prune(ctx context.Context, before time.Time, keep int) (deleted int, err error) {
	r.pages.Lock()
	defer r.pages.Unlock()
	var writers []string
	err = r.store.View(ctx, func(tx store.Tx) (err error) {
		writers, err = tx.Audit().Writers()
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, writer := range writers {
		for {
			began := time.Now()
			var n int
			err := r.store.Update(ctx, func(tx store.Tx) (err error) {
				n, err = r.pruneBatch(tx, writer, before, keep)
				return err
			})
			if err != nil {
				return deleted, err
			}
			if n == 0 {
				break
			}
			deleted += n
			t := time.NewTimer(pruneRest * time.Since(began))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return deleted, ctx.Err()
			}
		}
	}
	return deleted, nil
}

// pruneBatch deletes one batch, with a checkpoint of its last row.
func (r *Recorder) pruneBatch(tx store.Tx, writer string, before time.Time, keep int) (int, error) {
	newest, _, err := tx.Audit().Last(writer)
	if err != nil {
		return 0, err
	}
	rows, err := tx.Audit().Chain(writer, 0, pruneBatch)
	if err != nil {
		return 0, err
	}
	var row *store.AuditRow
	for _, next := range rows {
		// The newest row stays, so that the chain goes on from it.
		if next.Seq >= newest || !next.At.Before(before) && (keep == 0 || next.Seq > newest-int64(keep)) {
			break
		}
		row = next
	}
	if row == nil {
		return 0, nil
	}
	h, ok := audit.HashOf(row.Hash)
	if !ok {
		return 0, fault.New(fault.Unavailable, "row %d of the audit log has no hash: the records are damaged", row.Seq)
	}
	n, err := tx.Audit().Prune(writer, row.ID)
	if err != nil || n == 0 {
		return 0, err
	}
	start := r.sign(audit.Checkpoint{Kind: audit.Start, Writer: writer, Seq: row.Seq, Hash: h, At: r.now()})
	return n, tx.Audit().Mark(start)
}

// Verify checks all rows that are kept against their chains and signatures, and the columns that queries are answered by
// against the rows.
func (r *Recorder) Verify(ctx context.Context, c access.Caller) (*audit.Report, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	key := r.o.Key.Public()
	v := audit.NewVerifier(key, nil)
	report := &audit.Report{Key: key, At: r.now(), Complete: true}
	err := r.walk(ctx, v.Checkpoint, func(row *store.AuditRow, hash audit.Hash) error {
		rec, err := v.Row(row.Body, hash)
		if err != nil {
			return err
		}
		if !agree(row, rec) {
			return fault.New(fault.Invalid, "row %d of %.40q is not what its columns say: they were changed", row.Seq, row.Writer)
		}
		report.Add(rec)
		return nil
	})
	if err == nil {
		report.Chains, err = v.Finish()
	}
	return report, err
}

func agree(row *store.AuditRow, r *audit.Record) bool {
	return row.Writer == r.Writer && row.Seq == r.Seq && row.At.Equal(r.At) && row.Type == r.Type && row.Outcome == string(r.Outcome) &&
		row.Project == r.Project && row.Sandbox == r.Sandbox && row.Token == r.Token && row.Actor == r.Actor
}

// Key returns the key that checkpoints and exports are signed by.
func (r *Recorder) Key() audit.PublicKey { return r.o.Key.Public() }

// walk calls checkpoint and each for the checkpoints and the rows of all chains, in their order. No rows are deleted
// meanwhile.
func (r *Recorder) walk(ctx context.Context, checkpoint func(audit.Checkpoint) error, each func(*store.AuditRow, audit.Hash) error) error {
	r.pages.RLock()
	defer r.pages.RUnlock()
	if err := r.flush(ctx, true, true); err != nil {
		return err
	}
	var writers []string
	marks := make(map[string][]audit.Checkpoint)
	last := make(map[string]int64)
	rest := 0 // rows that are not walked yet
	err := r.store.View(ctx, func(tx store.Tx) (err error) {
		if writers, err = tx.Audit().Writers(); err != nil {
			return err
		}
		if !slices.Contains(writers, r.o.Writer) {
			writers = append(writers, r.o.Writer) // its checkpoints are gone, and its rows may not be
		}
		if rest, err = tx.Audit().Count(store.AuditQuery{}); err != nil {
			return err
		}
		for _, w := range writers {
			all, err := tx.Audit().Marks(w)
			if err != nil {
				return err
			}
			for _, m := range all {
				h, ok := audit.HashOf(m.Hash)
				if !ok {
					return fault.New(fault.Invalid, "the checkpoint of row %d of %.40q has no hash", m.Seq, w)
				}
				marks[w] = append(marks[w], audit.Checkpoint{Kind: audit.Kind(m.Kind), Writer: w, Seq: m.Seq, Hash: h, At: m.At, Signature: m.Signature})
			}
			slices.Reverse(marks[w]) // start before head
			if last[w], _, err = tx.Audit().Last(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, w := range writers {
		for _, m := range marks[w] {
			if err := checkpoint(m); err != nil {
				return err
			}
		}
		for after, seen := int64(0), int64(0); seen < last[w]; {
			var rows []*store.AuditRow
			err := r.store.View(ctx, func(tx store.Tx) (err error) {
				rows, err = tx.Audit().Chain(w, after, batch)
				return err
			})
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				return fault.New(fault.Invalid, "the rows of %.40q end before row %d", w, last[w])
			}
			for _, row := range rows {
				after, seen = row.ID, row.Seq
				if seen > last[w] {
					break
				}
				h, ok := audit.HashOf(row.Hash)
				if !ok {
					return fault.New(fault.Invalid, "row %d of %.40q has no hash", row.Seq, w)
				}
				if err := each(row, h); err != nil {
					return err
				}
				rest--
			}
		}
	}
	if rest != 0 {
		return fault.New(fault.Invalid, "the audit log has %d rows of writers that no checkpoint names", rest)
	}
	return nil
}
