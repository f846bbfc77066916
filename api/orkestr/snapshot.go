// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"net/http"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/snapshot"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// A snapshot is of a sandbox's disk: a fork begins with its files, and none of its programs run.

type snapshotShape struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"`
	Template string    `json:"template"`
	CPU      float64   `json:"cpu"`
	MemoryMB int       `json:"memory_mb"`
	Network  string    `json:"network"` // of a fork: the server's own
	Name     *string   `json:"name"`
	Source   *string   `json:"source_sandbox_id"`
	SizeMB   *int64    `json:"size_mb"`
	Region   string    `json:"region"`
	Error    *string   `json:"error_message"` // always null: one that fails is not kept
	Created  time.Time `json:"created_at"`
	Ready    time.Time `json:"ready_at"`
}

func (a *API) snapshotOf(s *sandbox.Snapshot) snapshotShape {
	out := snapshotShape{
		ID: string(s.ID), Status: "ready", Template: s.Image, CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, Network: string(a.Networks.DefaultNetwork().Mode),
		Region: a.region, Created: s.CreatedAt.UTC(), Ready: s.CreatedAt.UTC(),
	}
	if s.State == sandbox.SnapshotCreating {
		out.Status = "capturing"
	}
	if s.Name != "" {
		out.Name = &s.Name
	}
	if s.Sandbox != "" {
		out.Source = new(string(s.Sandbox))
	}
	if s.SizeBytes >= 0 {
		out.SizeMB = new(s.SizeBytes >> 20)
	}
	return out
}

type createSnapshot struct {
	ID   string `path:"id"`
	Body struct {
		Name *string `json:"name"`
	}
}

func (a *API) createSnapshot(ctx context.Context, c *httpapi.Call, in *createSnapshot) (snapshotShape, error) {
	if in.Body.Name != nil {
		if err := sandbox.CheckSnapshotName("name", *in.Body.Name); err != nil {
			return snapshotShape{}, err
		}
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := a.Snapshots.CreateSnapshot(ctx, c.Caller, in.ID, engine.SnapshotRequest{Name: httpapi.Given(in.Body.Name)})
	if fault.Is(err, fault.Exhausted) {
		err = coded(codeSnapshots, http.StatusConflict, err)
	}
	if err != nil {
		return snapshotShape{}, httpapi.Cause(ctx, err)
	}
	return a.snapshotOf(s), nil
}

type snapshotList struct {
	Snapshots []snapshotShape `json:"snapshots"`
}

// maxSnapshots is how many a list has: the SDK knows of no next page.
const maxSnapshots = 10_000

func (a *API) listSnapshots(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (snapshotList, error) {
	out := snapshotList{Snapshots: []snapshotShape{}}
	q := snapshot.Query{Limit: engine.MaxPage}
	for {
		page, err := a.Snapshots.Snapshots(ctx, c.Caller, q)
		if err != nil {
			return snapshotList{}, err
		}
		for _, s := range page.Items {
			out.Snapshots = append(out.Snapshots, a.snapshotOf(s))
		}
		if page.Next == "" {
			return out, nil
		}
		if len(out.Snapshots) >= maxSnapshots {
			return snapshotList{}, fault.New(fault.TooLarge, "there are more than %d snapshots", maxSnapshots).WithRemedy("list them by GET /v1/snapshots, which has pages")
		}
		q.Cursor = page.Next
	}
}

type bySnapshot struct {
	Snapshot string `path:"snapshot"`
}

func (a *API) getSnapshot(ctx context.Context, c *httpapi.Call, in *bySnapshot) (snapshotShape, error) {
	s, err := a.Snapshots.Snapshot(ctx, c.Caller, "", in.Snapshot)
	if err != nil {
		return snapshotShape{}, err
	}
	return a.snapshotOf(s), nil
}

// deleteSnapshot may be asked for twice: of one that is not there nothing is left to do.
func (a *API) deleteSnapshot(ctx context.Context, c *httpapi.Call, in *bySnapshot) (httpapi.None, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	err := a.Snapshots.DeleteSnapshot(ctx, c.Caller, "", in.Snapshot)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return httpapi.None{}, httpapi.Cause(ctx, err)
}
