// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"io"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// Contexts keeps the files that clients send for builds; *contexts.Store is it.
type Contexts interface {
	// Archive returns an archive of a Dockerfile and of what was sent by these hashes; fault.NotFound where one is not here.
	Archive(project, dockerfile string, hashes []string) (io.ReadCloser, error)
	Remove(project string, hashes []string)
}

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = template.MaxDockerfile

// Fields of a build.
const (
	dockerfileField = "buildInfo.dockerfileContent"
	hashesField     = "buildInfo.contextHashes"
)

// onlyImage returns the image of a Dockerfile that is one FROM line; "" for one that has to be built.
func onlyImage(b *wire.BuildInfo) (string, error) {
	switch {
	case strings.TrimSpace(b.Dockerfile) == "":
		return "", fault.InvalidField(dockerfileField, "is empty; give a Dockerfile, or leave buildInfo out")
	case len(b.Dockerfile) > maxDockerfile:
		return "", fault.InvalidField(dockerfileField, "has %d bytes, more than %d", len(b.Dockerfile), maxDockerfile)
	}
	name, _ := daytonaterms.OnlyFrom(b.Dockerfile)
	return name, nil
}

// provide completes a request by the image of a build: a Dockerfile of one FROM is an image's name, and any other is built. What is
// not here is made after the create has answered. The caller calls abandon where the create fails.
func (a *API) provide(ctx context.Context, c *httpapi.Call, b *wire.BuildInfo, r *engine.CreateRequest) (abandon func(), err error) {
	var of templates.Request
	if of.Spec.Image, err = onlyImage(b); err != nil {
		return nil, err
	}
	if a.Templates == nil {
		if of.Spec.Image == "" {
			return nil, fault.New(fault.Unsupported, "%s: this server builds no Dockerfiles", dockerfileField).WithRemedy("begin with an image, and run the steps by execute")
		}
		r.Image = of.Spec.Image
		return func() {}, nil
	}
	if of.Spec.Image == "" {
		of.Spec.Dockerfile, of.Spec.Contexts = b.Dockerfile, unique(b.Contexts)
		if of.Files, err = a.context(c, b); err != nil {
			return nil, err
		}
		of.Made = func() { a.contexts.Remove(c.Caller.Project, of.Spec.Contexts) }
	}
	return a.Templates.Provide(ctx, c.Caller, r, of)
}

// buildLogsURL returns where the log of a template's build is.
func buildLogsURL(c *httpapi.Call, path string) wire.Address {
	return wire.Address{URL: guard.BaseURL(c.R) + Base + path + "/build-logs"}
}

// built returns a sandbox whose Template is the version whose build makes its image, or made it.
func (a *API) built(ctx context.Context, c *httpapi.Call, ref string) (*sandbox.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return nil, err
	}
	if s.Template == nil || s.Template.ID == "" || a.Templates == nil {
		return nil, fault.New(fault.NotFound, "no image was built or pulled for the sandbox %s", s.Ref()).WithRemedy("the log of a snapshot is at /snapshots/{id}/build-logs-url")
	}
	return s, nil
}

func (a *API) sandboxBuildLogsURL(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Address, error) {
	s, err := a.built(ctx, c, in.Ref)
	if err != nil {
		return wire.Address{}, err
	}
	return buildLogsURL(c, "/sandbox/"+string(s.ID)), nil
}

// sandboxBuildLogs answers with what the build of a sandbox's image writes, as text.
func (a *API) sandboxBuildLogs(ctx context.Context, c *httpapi.Call, in *buildLogs) error {
	s, err := a.built(ctx, c, in.Ref)
	if err != nil {
		return err
	}
	return a.answerLog(ctx, c, s.Template.ID, given(in.Follow))
}

// answerLog answers with the log of a template's build, as text.
func (a *API) answerLog(ctx context.Context, c *httpapi.Call, ref string, follow bool) error {
	return c.AnswerLog(ctx, func(ctx context.Context, w io.Writer, flush func() error) error {
		return a.Templates.Log(ctx, c.Caller, ref, w, follow, flush)
	})
}

// context returns the context of a build. It checks the caller first, so that others do not learn what was sent.
func (a *API) context(c *httpapi.Call, b *wire.BuildInfo) (io.ReadCloser, error) {
	if err := mayBuild(c.Caller); err != nil {
		return nil, err
	}
	r, err := a.contexts.Archive(c.Caller.Project, b.Dockerfile, unique(b.Contexts))
	if fault.Is(err, fault.NotFound) {
		e := fault.As(err)
		return nil, fault.InvalidField(hashesField, "%s", e.Message).WithRemedy("%s", e.Remedy)
	}
	return r, err
}

// mayBuild returns an error for callers that are not administrators.
func mayBuild(caller access.Caller) error {
	if err := caller.Require(access.Admin); err != nil {
		return fault.Wrap(fault.Denied, err, "Dockerfiles and declarative images are built by tokens with the scope admin, which this one has not").
			WithRemedy("use a token of the project with the scope admin, or an image or a snapshot that is here")
	}
	return nil
}

// unique returns hashes without duplicates.
func unique(hashes []string) (out []string) {
	for _, h := range hashes {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// pushAccess returns keys to the object store, which are valid for the project and for an hour.
func (a *API) pushAccess(_ context.Context, c *httpapi.Call, _ *httpapi.NoInput) (wire.StorageAccess, error) {
	if err := mayBuild(c.Caller); err != nil {
		return wire.StorageAccess{}, err
	}
	base := guard.BaseURL(c.R)
	if strings.HasPrefix(base, "http://") && strings.HasPrefix(c.R.Header.Get("X-Daytona-Source"), "sdk-python") {
		return wire.StorageAccess{}, fault.New(fault.Unsupported, "Python's SDK sends local files by https alone, and this server was asked by %s", base).
			WithRemedy("set tls in the server's configuration, or DAYTONA_API_URL to an https address of it; TypeScript's SDK sends them by http, too")
	}
	k := a.keys.Issue(c.Caller)
	return wire.StorageAccess{
		AccessKey: k.ID, Secret: k.Secret, SessionToken: k.Token, StorageURL: base, OrganizationID: c.Caller.Project, Bucket: a.keys.Bucket(), Region: a.target,
	}, nil
}
