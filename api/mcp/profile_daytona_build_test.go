// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"archive/tar"
	"context"
	"io"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/daytona"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
)

// builder builds node of a Dockerfile that says so.
type builder struct{ t *testing.T }

func (b builder) BuildDockerfile(_ context.Context, c access.Caller, archive io.Reader, r dockerfile.Request, tell func(dockerfile.Event)) (image.Status, error) {
	if err := c.Require(access.Admin); err != nil {
		return image.Status{}, err
	}
	files := tar.NewReader(archive)
	h, err := files.Next()
	if err != nil || h.Name != "Dockerfile" || r.Name != "" {
		b.t.Errorf("%+v of %+v: %v", h, r, err)
	}
	text, err := io.ReadAll(files)
	if err != nil {
		b.t.Error(err)
	}
	if _, err := files.Next(); err != io.EOF {
		b.t.Errorf("more than a Dockerfile: %v", err)
	}
	tell(dockerfile.Event{Step: 1, Steps: 1, Line: 2, Text: "RUN make"})
	tell(dockerfile.Event{Output: []byte("made\n")})
	if strings.Contains(string(text), "false") {
		return image.Status{}, fault.New(fault.State, "line 2: the step failed")
	}
	return image.Status{Image: image.Image{Digest: "node"}}, nil
}

func TestDaytonaBuildsADockerfileForASandbox(t *testing.T) {
	t.Parallel()
	h := open(t)
	services := service.Of(h.engine, h.inside, portsOf(h.engine), h.code, h.runs, deskOf(h.engine), skillsOf(h.engine))
	services.Dockerfiles = builder{t}
	h.handler, h.url = serveWith(t, mcp.Options{Services: services, Version: "test", Previews: previews{}})
	s := h.at("/mcp/"+daytona.Name, "t-admin", handshake)
	id := newDaytona(t, s, arguments{"buildInfo": arguments{"dockerfileContent": "FROM python\nRUN make\n"}})
	box, err := h.engine.Get(t.Context(), access.Caller{Project: "default", Scopes: []access.Scope{access.SandboxesRead}}, id)
	if err != nil || box.Image != "node" {
		t.Errorf("%+v, %v", box, err)
	}
	refused(t, s, "create_sandbox", arguments{"buildInfo": arguments{"dockerfileContent": "FROM python\nRUN false\n"}}, "line 2: the step failed")
	refused(t, h.at("/mcp/"+daytona.Name, "t-alice", handshake), "create_sandbox", arguments{"buildInfo": arguments{"dockerfileContent": "FROM python\nRUN make\n"}}, "error (denied)")
}
