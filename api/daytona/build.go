// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 256 << 10

// imageOf is the image that a sandbox is to begin with: a Dockerfile of one FROM is a name, and any other is built first.
func (a *API) imageOf(ctx context.Context, c *httpapi.Call, b *wire.BuildInfo) (string, error) {
	const field = "buildInfo.dockerfileContent"
	if strings.TrimSpace(b.Dockerfile) == "" {
		return "", fault.InvalidField(field, "is empty; give a Dockerfile, or leave buildInfo out")
	}
	if image, ok := daytonaterms.OnlyFrom(b.Dockerfile); ok {
		return image, nil
	}
	switch {
	case len(b.Dockerfile) > maxDockerfile:
		return "", fault.InvalidField(field, "has %d bytes, more than %d", len(b.Dockerfile), maxDockerfile)
	case a.Dockerfiles == nil:
		return "", fault.New(fault.Unsupported, "%s: this server builds no Dockerfiles", field).WithRemedy("begin with an image, and run the steps by execute")
	case len(b.Contexts) > 0:
		return "", fault.New(fault.Unsupported, "buildInfo.contextHashes: files for a build cannot be sent this way yet").WithRemedy("build the image by sandpit image build")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "Dockerfile", Mode: 0o644, Size: int64(len(b.Dockerfile))}); err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(b.Dockerfile)); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	made, err := a.Dockerfiles.BuildDockerfile(ctx, c.Caller, &archive, dockerfile.Request{}, func(dockerfile.Event) {})
	return made.Image.Digest, err
}
