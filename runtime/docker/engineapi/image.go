// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Image is one that an Engine has.
type Image struct {
	ID           string `json:"Id"` // sha256:HEX, of its configuration
	Parent       string // id of the image that the container was of which it was committed of; "": none, or the Engine does not say
	RepoTags     []string
	RepoDigests  []string
	Architecture string
	OS           string `json:"Os"`
	Size         int64
	Config       Config
	RootFS       struct{ Layers []string } // digests of what each holds, uncompressed
}

// ListedImage is an image in a list.
type ListedImage struct {
	ID       string `json:"Id"`
	ParentID string `json:"ParentId"` // as Image.Parent
	RepoTags []string
	Labels   map[string]string
}

// InspectImage returns an image by reference or id; a missing one is fault.NotFound.
func (c *Client) InspectImage(ctx context.Context, ref string) (Image, error) {
	var out Image
	err := c.call(ctx, request{method: http.MethodGet, path: image(ref, "/json"), within: callTimeout}, &out)
	out.Parent = prefixed(out.Parent)
	return out, err
}

// ListImages returns all images with these labels: name, or name=value; but for those that have no
// name and are others' parents.
func (c *Client) ListImages(ctx context.Context, labels ...string) ([]ListedImage, error) {
	var out []ListedImage
	asked := labels
	if c.Podman() {
		asked = labels[:min(1, len(labels))] // asked for two, version 4.3 finds none
	}
	err := c.call(ctx, request{
		method: http.MethodGet, path: "/images/json", query: url.Values{"filters": {labelled(asked)}}, within: callTimeout,
	}, &out)
	for n := range out {
		out[n].ParentID = prefixed(out[n].ParentID)
	}
	return slices.DeleteFunc(out, func(img ListedImage) bool { return !hasAll(img.Labels, labels) }), err
}

// hasAll reports whether labels are among those of something: name, or name=value.
func hasAll(have map[string]string, labels []string) bool {
	for _, label := range labels {
		name, want, exact := strings.Cut(label, "=")
		if got, ok := have[name]; !ok || exact && got != want {
			return false
		}
	}
	return true
}

// LoadImage gives an Engine an archive of an image, as docker load reads it.
func (c *Client) LoadImage(ctx context.Context, archive io.Reader) error {
	return c.work(ctx, request{
		method: http.MethodPost, path: "/images/load", query: url.Values{"quiet": {"1"}}, body: archive, kind: "application/x-tar",
	}, nil)
}

// SaveImage returns an image as an archive, as docker save writes it. The caller closes it.
func (c *Client) SaveImage(ctx context.Context, ref string) (io.ReadCloser, error) {
	s, err := c.stream(ctx, request{method: http.MethodGet, path: image(ref, "/get")}, quietTimeout, 0)
	if err != nil {
		return nil, err
	}
	return &saved{s}, nil
}

// saved is an archive that is being read.
type saved struct{ *lines }

func (s *saved) Read(b []byte) (int, error) {
	n, err := s.all.Read(b)
	if err != nil && err != io.EOF {
		err = s.c.failed(s.ctx, s.r, cmp.Or(context.Cause(s.limit), err))
	}
	return n, err
}

func (s *saved) Close() error {
	s.close()
	return nil
}

// PullImage has the Engine fetch an image of a registry, and tells how far each layer is. One that
// the registry lacks is fault.NotFound. A reference without a tag or a digest is that of the tag latest.
func (c *Client) PullImage(ctx context.Context, ref string, tell func(layer, status string, done, total int64)) error {
	if !strings.ContainsAny(ref[strings.LastIndexByte(ref, '/')+1:], ":@") {
		ref += ":latest" // an Engine fetches all that the repository has otherwise
	}
	return c.work(ctx, request{method: http.MethodPost, path: "/images/create", query: url.Values{"fromImage": {ref}}}, func(p progress) {
		if tell != nil {
			tell(p.ID, clip(p.Status), p.ProgressDetail.Current, p.ProgressDetail.Total)
		}
	})
}

// Commit says what an image is called that is made of a container.
type Commit struct {
	Repository, Tag string
	Labels          map[string]string // with those of the container, over those of the same names; values have no spaces
}

// CommitContainer makes an image of a container's disk, up or down, and returns its id. Its
// processes go on meanwhile unless they are frozen: what an Engine does about that by itself may fail unsaid. An Engine that has begun finishes it, whatever becomes
// of the caller. What is mounted is no part of it.
func (c *Client) CommitContainer(ctx context.Context, id string, to Commit) (string, error) {
	var out struct {
		ID string `json:"Id"`
	}
	q := url.Values{"container": {id}, "repo": {to.Repository}, "tag": {to.Tag}, "pause": {"0"}}
	if c.Podman() { // which reads no labels in what is sent
		for _, name := range slices.Sorted(maps.Keys(to.Labels)) {
			q.Add("changes", "LABEL "+name+"="+to.Labels[name])
		}
	}
	err := c.call(ctx, request{
		method: http.MethodPost, path: "/commit", query: q, in: struct{ Labels map[string]string }{to.Labels}, within: copyTimeout,
	}, &out)
	if err == nil && out.ID == "" {
		err = c.noEngine(nil, "makes an image without an id")
	}
	return prefixed(out.ID), err
}

// prefixed returns an image's id as Docker writes it. Podman leaves the name of the hash out here and there.
func prefixed(id string) string {
	if len(id) == 64 && !strings.Contains(id, ":") {
		return "sha256:" + id
	}
	return id
}

// TagImage gives an image one more name. Another that had it has it no longer.
func (c *Client) TagImage(ctx context.Context, ref, repository, tag string) error {
	return c.call(ctx, request{method: http.MethodPost, path: image(ref, "/tag"), query: url.Values{"repo": {repository}, "tag": {tag}}, within: callTimeout}, nil)
}

// RemoveImage takes a name from an image, and removes it with its last unless others are made of it.
// Where a container uses it, its last name is fault.Conflict.
func (c *Client) RemoveImage(ctx context.Context, ref string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: image(ref, ""), within: workTimeout}, nil)
}

// image returns a path of one. A reference has slashes that are part of the path.
func image(ref, verb string) string {
	parts := strings.Split(ref, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/images/" + strings.Join(parts, "/") + verb
}
