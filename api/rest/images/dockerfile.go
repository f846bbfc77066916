// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/sandbox"
)

type buildDockerfile struct {
	Name       *string `query:"name" doc:"a reference for the image, as app:1.4; left out: it has its digest alone"`
	Dockerfile *string `query:"dockerfile" doc:"its name in the archive; default Dockerfile"`
	Target     *string `query:"target" doc:"name or number of the stage that the image is of; default the last"`
	Args       *string `query:"build_args" doc:"values of ARG: a JSON object of texts"`
	NoCache    *bool   `query:"no_cache" doc:"take no step over from an earlier build"`
}

// buildDockerfile builds what the raw body has, and streams how it goes.
func (a *API) buildDockerfile(ctx context.Context, c *httpapi.Call, in *buildDockerfile) error {
	if a.Dockerfiles == nil {
		return fault.New(fault.Unsupported, "this server builds no Dockerfiles")
	}
	if enc := c.R.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, "the body is encoded as %q; an archive may be compressed, its transport not", sandbox.Clip(enc, 40)).
				WithRemedy("send it without the header Content-Encoding"))
	}
	r := dockerfile.Request{Name: httpapi.Given(in.Name), Dockerfile: httpapi.Given(in.Dockerfile), Target: httpapi.Given(in.Target), Anew: in.NoCache != nil && *in.NoCache}
	if in.Args != nil {
		if err := json.Unmarshal([]byte(*in.Args), &r.Args); err != nil {
			return fault.InvalidField("build_args", "is not a JSON object of texts").WithRemedy(`write it as {"VERSION":"1.4"}`)
		}
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, stop := guard.WhilePresent(ctx)
	defer stop()
	// The stream begins with the first event: before it the body is read, and what is wrong of it is an answer like others.
	var s *httpapi.Events
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	exact := httpapi.WantsExact(c.R)
	made, err := a.Dockerfiles.BuildDockerfile(ctx, c.Caller, http.MaxBytesReader(nil, c.R.Body, a.MaxFile), r, func(e dockerfile.Event) {
		if s == nil {
			s = c.Events()
		}
		// A client that went away is found by the context.
		if e.Output != nil {
			_ = s.Send(v1.BuildOutput, 0, shape.Output(sandbox.Frame{At: time.Now(), Data: e.Output}, exact))
			return
		}
		_ = s.Send(v1.BuildStarted, 0, v1.BuildStep{Phase: e.Stage, Text: e.Text, Progress: e.Progress, Step: e.Step, Steps: e.Steps, Line: e.Line, Kept: e.Kept})
	})
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err = guard.TooLarge(tooBig.Limit)
		}
		if s == nil {
			return httpapi.Cause(ctx, err)
		}
		return s.Fail(httpapi.Cause(ctx, err))
	}
	if s == nil {
		s = c.Events()
	}
	s.End()
	_ = s.Send(v1.BuildMade, 0, ImageOf(made)) // what a client that went away does not take is left out
	return nil
}
