// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"sandpit.dev/fault"
)

// FileStat is what an Engine says of a file of a container, which it does not follow if it is a link.
type FileStat struct {
	Size int64
	Mode fs.FileMode
}

// PutArchive unpacks a tar archive in a directory of a container, which need not run.
func (c *Client) PutArchive(ctx context.Context, id, dir string, tar io.Reader) error {
	return c.call(ctx, request{
		method: http.MethodPut, path: container(id, "/archive"), query: url.Values{"path": {dir}}, body: tar, kind: "application/x-tar", within: workTimeout,
	}, nil)
}

// StatArchive looks at a file of a container, which need not run; a missing one is fault.NotFound. Links
// in the directories of its path are followed, within the container.
func (c *Client) StatArchive(ctx context.Context, id, path string) (FileStat, error) {
	r := request{method: http.MethodHead, path: container(id, "/archive"), query: url.Values{"path": {path}}, within: callTimeout}
	limit, cancel := WithTimeout(ctx, c.clock, r.within, errTimeLimit)
	defer cancel()
	resp, err := c.do(limit, r)
	if err != nil {
		return FileStat{}, c.failed(ctx, r, cmp.Or(context.Cause(limit), err))
	}
	defer func() { _ = resp.Body.Close() }()
	var out FileStat
	b, err := base64.StdEncoding.DecodeString(resp.Header.Get("X-Docker-Container-Path-Stat"))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	// Podman tells of a link to nowhere, and says that there is nothing.
	if nowhere := err == nil && resp.StatusCode == http.StatusNotFound && out.Mode&fs.ModeSymlink != 0; resp.StatusCode >= 300 && !nowhere {
		return FileStat{}, c.refused(resp)
	}
	if err != nil {
		return FileStat{}, c.noEngine(err, "tells nothing of a file")
	}
	return out, nil
}

// OwnerOf returns the user and the group to whom a file of a container belongs, by the container's own
// numbers. Of a directory no more than that is read.
func (c *Client) OwnerOf(ctx context.Context, id, path string) (uid, gid int, err error) {
	r := request{method: http.MethodGet, path: container(id, "/archive"), query: url.Values{"path": {path}}, within: callTimeout}
	resp, done, err := c.send(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	defer done()
	h, err := tar.NewReader(resp.Body).Next()
	switch {
	case isLimit(err):
		return 0, 0, c.failed(ctx, r, err)
	case err != nil:
		return 0, 0, c.noEngine(err, "has no archive of a file")
	}
	return h.Uid, h.Gid, nil
}

// MountsParts reports whether the Engine mounts directories of volumes, see [VolumeOptions]. Podman does, from 5.4 on, for who speaks its own API:
// of Docker's it takes the request, and mounts the whole volume.
func (c *Client) MountsParts() bool { return !c.Podman() && !c.APIVersion().before(Version{1, 45}) }

// PartChanged reports whether an Engine says that a directory of a volume is none, or leads elsewhere, now that it is to mount it.
func PartChanged(err error) bool {
	return fault.Is(err, fault.NotFound) && strings.Contains(err.Error(), "cannot access path") ||
		fault.Is(err, fault.Invalid) && strings.Contains(err.Error(), "escapes the base directory")
}
