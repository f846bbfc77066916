// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/query"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

type createSnapshot struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreateSnapshot
}

func (a *API) createSnapshot(ctx context.Context, c *idempotency.Call, in *createSnapshot) (v1.Snapshot, error) {
	r := engine.SnapshotRequest{Replace: in.Body.Replace}
	if in.Body.Name != nil {
		if err := sandbox.CheckSnapshotName("name", *in.Body.Name); err != nil {
			return v1.Snapshot{}, err
		}
		r.Name = *in.Body.Name
	} else if in.Body.Replace {
		return v1.Snapshot{}, fault.InvalidField("replace", "is given without a name; there is nothing to replace").
			WithRemedy("send the name of the snapshot to replace, or leave replace out")
	}
	s, made, err := idempotency.Again(c, keyed.Snapshot, a.snapshotBy(ctx, c), nil)
	if !made && err == nil {
		s, err = a.Snapshots.CreateSnapshot(ctx, c.Caller, in.Ref, r)
	}
	if err != nil {
		return v1.Snapshot{}, err
	}
	c.W.Header().Set("Location", "/v1/snapshots/"+string(s.ID))
	return snapshotOf(s), nil
}

// snapshotBy finds what a request has made; see [again].
func (a *API) snapshotBy(ctx context.Context, c *idempotency.Call) func(string) (*sandbox.Snapshot, error) {
	return func(id string) (*sandbox.Snapshot, error) { return a.Snapshots.Snapshot(ctx, c.Caller, "", id) }
}

type snapshotPage struct {
	Limit     *int    `query:"limit" doc:"most rows of a page, 1 to 500; default 100"`
	Cursor    *string `query:"cursor" doc:"next_cursor of the page before"`
	SortOrder *string `query:"sort_order" doc:"desc (the default) or asc"`
}

type listSnapshots struct {
	snapshotPage
	Sandbox *string `query:"sandbox" doc:"only those of this sandbox: its id or key, or the id of one that is gone"`
}

type listSnapshotsOf struct {
	Ref string `path:"id" doc:"the sandbox's id or key, or the id of one that is gone"`
	snapshotPage
}

const defaultSnapshots = 100

func (a *API) listSnapshots(ctx context.Context, c *idempotency.Call, in *listSnapshots) (v1.SnapshotPage, error) {
	if in.Sandbox != nil && *in.Sandbox == "" {
		return v1.SnapshotPage{}, fault.InvalidField("sandbox", "is empty; leave it out for the snapshots of all sandboxes")
	}
	return a.snapshots(ctx, c, httpapi.Given(in.Sandbox), &in.snapshotPage)
}

func (a *API) listSnapshotsOf(ctx context.Context, c *idempotency.Call, in *listSnapshotsOf) (v1.SnapshotPage, error) {
	return a.snapshots(ctx, c, in.Ref, &in.snapshotPage)
}

func (a *API) snapshots(ctx context.Context, c *idempotency.Call, of string, p *snapshotPage) (v1.SnapshotPage, error) {
	var sp httpapi.Spellings
	r := snapshot.Query{Sandbox: of, Limit: defaultSnapshots, Cursor: httpapi.Given(p.Cursor)}
	if p.Limit != nil {
		if r.Limit = *p.Limit; r.Limit < 1 || r.Limit > engine.MaxPage {
			sp.Add("limit", "%d is outside 1 to %d", r.Limit, engine.MaxPage)
		}
	}
	r.Oldest = query.Ascending(&sp, p.SortOrder)
	if err := sp.Err(); err != nil {
		return v1.SnapshotPage{}, err
	}
	got, err := a.Snapshots.Snapshots(ctx, c.Caller, r)
	if err != nil {
		return v1.SnapshotPage{}, err
	}
	out := v1.SnapshotPage{Items: make([]v1.Snapshot, 0, len(got.Items)), Total: got.Total, NextCursor: shape.TextOrNull(got.Next)}
	for _, s := range got.Items {
		out.Items = append(out.Items, snapshotOf(s))
	}
	return out, nil
}

// bySnapshot names a snapshot by itself.
type bySnapshot struct {
	Snapshot string `path:"snapshot" doc:"the snapshot's id, or SANDBOX/NAME with the slash as %2F"`
}

// bySnapshotOf names a snapshot of a sandbox.
type bySnapshotOf struct {
	Ref      string `path:"id" doc:"the sandbox's id or key"`
	Snapshot string `path:"snapshot" doc:"the snapshot's name or id"`
}

func (a *API) getSnapshot(ctx context.Context, c *idempotency.Call, in *bySnapshot) (v1.Snapshot, error) {
	return a.getSnapshotOf(ctx, c, &bySnapshotOf{"", in.Snapshot})
}

func (a *API) getSnapshotOf(ctx context.Context, c *idempotency.Call, in *bySnapshotOf) (v1.Snapshot, error) {
	s, err := a.Snapshots.Snapshot(ctx, c.Caller, in.Ref, in.Snapshot)
	if err != nil {
		return v1.Snapshot{}, err
	}
	return snapshotOf(s), nil
}

func (a *API) deleteSnapshot(ctx context.Context, c *idempotency.Call, in *bySnapshot) (httpapi.None, error) {
	return httpapi.None{}, a.Snapshots.DeleteSnapshot(ctx, c.Caller, "", in.Snapshot)
}

func (a *API) deleteSnapshotOf(ctx context.Context, c *idempotency.Call, in *bySnapshotOf) (httpapi.None, error) {
	return httpapi.None{}, a.Snapshots.DeleteSnapshot(ctx, c.Caller, in.Ref, in.Snapshot)
}

func (a *API) archiveSnapshot(ctx context.Context, c *idempotency.Call, in *bySnapshot) (v1.Snapshot, error) {
	return a.archiveSnapshotOf(ctx, c, &bySnapshotOf{"", in.Snapshot})
}

func (a *API) archiveSnapshotOf(ctx context.Context, c *idempotency.Call, in *bySnapshotOf) (v1.Snapshot, error) {
	s, err := a.Snapshots.ArchiveSnapshot(ctx, c.Caller, in.Ref, in.Snapshot)
	if err != nil {
		return v1.Snapshot{}, err
	}
	return snapshotOf(s), nil
}

// exportSnapshot sends the archive as it is made: how long it is nobody knows
// before. One that breaks off ends with the connection, not with the archive.
func (a *API) exportSnapshot(ctx context.Context, c *idempotency.Call, in *bySnapshot) error {
	s, err := a.Snapshots.Snapshot(ctx, c.Caller, "", in.Snapshot)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", v1.SnapshotType)
	h.Set("Content-Disposition", `attachment; filename="`+string(s.ID)+`.tar.gz"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if c.R.Method == http.MethodHead {
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	w := c.StallWriter()
	defer w.Close()
	return httpapi.Cause(ctx, a.Snapshots.ExportSnapshot(ctx, c.Caller, "", string(s.ID), w))
}

type importSnapshot struct {
	Name *string `query:"name" doc:"the snapshot's name; left out: the one in the archive"`
}

func (a *API) importSnapshot(ctx context.Context, c *idempotency.Call, in *importSnapshot) (v1.Snapshot, error) {
	if in.Name != nil {
		if err := sandbox.CheckSnapshotName("name", *in.Name); err != nil {
			return v1.Snapshot{}, err
		}
	}
	if enc := c.R.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return v1.Snapshot{}, guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, "the body is encoded as %q; an archive is sent as it was exported", sandbox.Clip(enc, 40)).
				WithRemedy("send it without the header Content-Encoding"))
	}
	if c.R.ContentLength > a.maxFile {
		return v1.Snapshot{}, guard.TooLarge(a.maxFile)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, stop := guard.WhilePresent(ctx) // what was sent may be work for long
	defer stop()
	body := http.MaxBytesReader(nil, c.R.Body, a.maxFile)
	s, made, err := idempotency.Again(c, keyed.Snapshot, a.snapshotBy(ctx, c), nil)
	if !made && err == nil {
		s, err = a.Snapshots.ImportSnapshot(ctx, c.Caller, body, engine.ImportRequest{Name: httpapi.Given(in.Name)})
	}
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return v1.Snapshot{}, guard.TooLarge(tooBig.Limit)
		}
		return v1.Snapshot{}, httpapi.Cause(ctx, err)
	}
	c.W.Header().Set("Location", "/v1/snapshots/"+string(s.ID))
	return snapshotOf(s), nil
}

func snapshotOf(s *sandbox.Snapshot) v1.Snapshot {
	out := v1.Snapshot{
		ID: string(s.ID), Name: shape.TextOrNull(s.Name), Project: s.Project, Sandbox: shape.TextOrNull(string(s.Sandbox)), Auto: s.Auto,
		Parent: shape.TextOrNull(string(s.Parent)), Status: string(s.State), Image: s.Image, Digest: s.ImageDigest, Runtime: s.Runtime,
		CPUCores: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB, Pids: s.Limits.Pids,
		EnvNames:  append([]string{}, slices.Sorted(maps.Keys(s.Env))...),
		CreatedAt: s.CreatedAt.UTC(), CreatedBy: s.CreatedBy, Detail: s.Detail,
	}
	if s.Archived() && s.State == sandbox.SnapshotReady {
		out.Status, out.Archive = "archived", shape.Archive(s.Archive)
	}
	if s.SizeBytes >= 0 {
		out.SizeBytes = &s.SizeBytes
	}
	return out
}
