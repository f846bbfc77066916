// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	v1 "sandpit.dev/api/v1"
)

// BuildDockerfile is how a Dockerfile is to be built. The zero value works.
type BuildDockerfile struct {
	Name       string            // a reference for the image, as app:1.4; empty: it has its digest alone
	Dockerfile string            // its name in the archive; empty: Dockerfile
	Target     string            // name or number of the stage that the image is of; empty: the last
	Args       map[string]string // values of ARG
	NoCache    bool              // take no step over from an earlier build
	// Step and Output are called as the build goes on, one at a time; each may be nil. An error ends the build.
	Step   func(v1.BuildStep) error
	Output func(data []byte) error // what steps write, of both their streams
}

// BuildDockerfile makes an image of a Dockerfile and returns it. The archive, of tar, compressed by gzip or not, has the
// directory that COPY and ADD take from. The build ends with ctx; one after it goes on behind the last step that was done.
func (c *Client) BuildDockerfile(ctx context.Context, archive io.Reader, b BuildDockerfile) (*v1.Image, error) {
	q := make(url.Values)
	set(q, "name", b.Name)
	set(q, "dockerfile", b.Dockerfile)
	set(q, "target", b.Target)
	if b.NoCache {
		q.Set("no_cache", "true")
	}
	if len(b.Args) > 0 {
		text, err := json.Marshal(b.Args)
		if err != nil {
			return nil, err
		}
		q.Set("build_args", string(text))
	}
	resp, err := c.do(ctx, request{
		method: "POST", path: "/images/build", query: q, raw: archive, size: -1,
		header: http.Header{"Content-Type": {v1.ContextType}, "Accept": {"text/event-stream;data=exact"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var img *v1.Image
	err = c.each(ctx, resp.Body, "build", "build again: it goes on behind the last step that was done", func(ev event) (last bool, err error) {
		img, err = b.event(ev)
		return img != nil, err
	})
	return img, err
}

// event passes an event on. The image is not nil after the last.
func (b *BuildDockerfile) event(ev event) (*v1.Image, error) {
	switch ev.name {
	case v1.BuildStarted:
		return nil, handOn(ev, b.Step)
	case v1.BuildOutput:
		if b.Output == nil {
			return nil, nil
		}
		return nil, handOn(ev, func(out v1.Output) error {
			data, err := exact(out.Data, out.DataBase64)
			if err != nil {
				return garbled(err)
			}
			return b.Output(data)
		})
	case v1.BuildMade:
		img := new(v1.Image)
		if err := json.Unmarshal(ev.data, img); err != nil {
			return nil, garbled(err)
		}
		return img, nil
	case v1.StreamError:
		return nil, handOn(ev, func(p v1.Problem) error { return faultOf(&p, "") })
	}
	return nil, nil // of a later version
}
