// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 256 << 10

// built builds the image of a Dockerfile, which has no files to copy, and returns its digest. One that was
// built before is there at once.
func built(ctx context.Context, c *toolset.Call, text string) (string, error) {
	if c.Dockerfiles == nil {
		return "", fault.New(fault.Unsupported, "this server builds no Dockerfiles").
			WithRemedy("begin with a template, and run the steps by execute_command")
	}
	if len(text) > maxDockerfile {
		return "", fault.InvalidField("buildInfo", "has a Dockerfile of %d bytes, more than %d", len(text), maxDockerfile)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "Dockerfile", Mode: 0o644, Size: int64(len(text))}); err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	made, err := c.Dockerfiles.BuildDockerfile(ctx, c.Caller, &archive, dockerfile.Request{}, func(e dockerfile.Event) {
		switch {
		case e.Output != nil:
			c.Progress.Wrote(e.Output)
		case e.Steps > 0:
			c.Progress.Say(fmt.Sprintf("step %d of %d, line %d: %s", e.Step, e.Steps, e.Line, e.Text))
		}
	})
	return made.Image.Digest, err
}
