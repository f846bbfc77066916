// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// A snapshot is named by its id, or as SANDBOX/NAME: a sandbox's id or key, a
// slash, and the name of one of its snapshots. Among the snapshots of a sandbox
// that a method takes, the name alone is enough.

// Snapshot keeps a sandbox's disk as it is, while it runs or not. The zero request makes one
// without a name, which is deleted with its sandbox.
func (c *Client) Snapshot(ctx context.Context, ref string, r v1.CreateSnapshot) (*v1.Snapshot, error) {
	out := new(v1.Snapshot)
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/snapshots"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// SnapshotQuery selects snapshots. The zero value selects all of the project.
type SnapshotQuery struct {
	Sandbox string // only those of this sandbox: its key or id, or the id of one that is gone
	Oldest  bool   // oldest first; else newest
	Limit   int    // most of one page, 1 to 500; zero: the server's default
	Cursor  string // NextCursor of the page before
}

// SnapshotsPage returns one page of snapshots.
func (c *Client) SnapshotsPage(ctx context.Context, q SnapshotQuery) (*v1.SnapshotPage, error) {
	v := make(url.Values)
	set(v, "sandbox", q.Sandbox)
	set(v, "cursor", q.Cursor)
	if q.Oldest {
		v.Set("sort_order", "asc")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	p := new(v1.SnapshotPage)
	if _, err := c.call(ctx, request{method: "GET", path: "/snapshots", query: v}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Snapshots returns all snapshots that match, and fetches each page when it is needed. The
// sequence ends after an error.
func (c *Client) Snapshots(ctx context.Context, q SnapshotQuery) iter.Seq2[*v1.Snapshot, error] {
	return all(q.Cursor, func(cursor string) ([]v1.Snapshot, *string, error) {
		q := q
		q.Cursor = cursor
		p, err := c.SnapshotsPage(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		return p.Items, p.NextCursor, nil
	})
}

// GetSnapshot returns a snapshot.
func (c *Client) GetSnapshot(ctx context.Context, snapshot string) (*v1.Snapshot, error) {
	return c.snapshot(ctx, request{method: "GET", path: "/snapshots/" + seg(snapshot)})
}

// DeleteSnapshot deletes a snapshot. What was made from it stays.
func (c *Client) DeleteSnapshot(ctx context.Context, snapshot string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: "/snapshots/" + seg(snapshot)}, nil)
	return err
}

// ArchiveSnapshot packs a snapshot, and has it kept elsewhere: it takes no room where the disks are until
// a sandbox is made of it, or it is used otherwise, which brings it back.
func (c *Client) ArchiveSnapshot(ctx context.Context, snapshot string) (*v1.Snapshot, error) {
	return c.snapshot(ctx, request{method: "POST", path: "/snapshots/" + seg(snapshot) + "/archive"})
}

// ExportSnapshot opens a snapshot as an archive, which ImportSnapshot of any server accepts. The
// archive is complete when Read returned io.EOF; any other error means that it was cut short. The
// caller closes it.
func (c *Client) ExportSnapshot(ctx context.Context, snapshot string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, request{method: "GET", path: "/snapshots/" + seg(snapshot) + "/archive"})
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, "archive", "export it"}, nil
}

// archive is an answer that is complete or an error.
type archive struct {
	io.ReadCloser
	what, again string
}

func (a *archive) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fault.Wrap(fault.Unavailable, err, "the %s broke off", a.what).
			WithRemedy("%s again; if it breaks off again, the server's log says why", a.again)
	}
	return n, err
}

// ImportOptions configure the import of a snapshot. The zero value works.
type ImportOptions struct {
	Name string // of the snapshot; empty: the one in the archive
	Size int64  // of the archive in bytes, if it is known: it lets the server refuse early. Zero or negative: unknown
}

// ImportSnapshot makes a snapshot from an archive of ExportSnapshot: all of it, or nothing if it
// fails. It does not belong to a sandbox.
func (c *Client) ImportSnapshot(ctx context.Context, r io.Reader, o ImportOptions) (*v1.Snapshot, error) {
	q := make(url.Values)
	set(q, "name", o.Name)
	size := o.Size
	if size <= 0 {
		size = -1
	}
	return c.snapshot(ctx, request{
		method: "POST", path: "/snapshots/import", query: q, raw: r, size: size, header: http.Header{"Content-Type": {v1.SnapshotType}},
	})
}

func (c *Client) snapshot(ctx context.Context, r request) (*v1.Snapshot, error) {
	s := new(v1.Snapshot)
	if _, err := c.call(ctx, r, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Rollback replaces a sandbox's disk by that of a snapshot: its processes end, its id and key
// stay. To is the name of one of its snapshots, the id of any, or "base": the unchanged image. A
// stopped sandbox stays stopped.
func (c *Client) Rollback(ctx context.Context, ref, to string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/rollback"), body: v1.RollbackSandbox{To: to}})
}

// Fork makes running sandboxes whose disks are copies of one sandbox's: all that are asked for,
// or none. They have their own ids, and none of its processes.
func (c *Client) Fork(ctx context.Context, ref string, r v1.ForkSandbox) ([]v1.Sandbox, error) {
	var out v1.SandboxList
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/fork"), body: r}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Promote has a fork take the place of the sandbox that it was forked from: the parent's key, labels, clocks, volumes
// and snapshots are the fork's from then on, what the parent was is a snapshot of it with the name (empty: none), and the parent is deleted.
func (c *Client) Promote(ctx context.Context, ref, name string) (*v1.Sandbox, error) {
	var r v1.PromoteSandbox
	if name != "" {
		r.Name = &name
	}
	s := new(v1.Sandbox)
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/promote"), body: r}, s); err != nil {
		return nil, err
	}
	return s, nil
}

// DiffOptions select what to compare. The zero value compares a sandbox as it is with its image.
type DiffOptions struct {
	From  string // a snapshot, or "base": the image; empty: base
	To    string // a snapshot, or "now"; empty: now
	Limit int    // most changes, 1 to 10000; zero: the server's default
}

// Diff returns what changed on a sandbox's disk between two points in time.
func (c *Client) Diff(ctx context.Context, ref string, o DiffOptions) (*v1.Diff, error) {
	v := make(url.Values)
	set(v, "from", o.From)
	set(v, "to", o.To)
	if o.Limit != 0 {
		v.Set("limit", strconv.Itoa(o.Limit))
	}
	out := new(v1.Diff)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/diff"), query: v}, out); err != nil {
		return nil, err
	}
	return out, nil
}
