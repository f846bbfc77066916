// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"io"
	"runtime"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/template"
)

// Images are what templates begin with.
type Images interface {
	// Here returns fault.NotFound where no image of a name is on this machine.
	Here(ctx context.Context, name string) error
	// Bring has an image built or pulled, and waits for it. It is for administrators.
	Bring(ctx context.Context, c access.Caller, name string) error
	// BuildDockerfile is [build.Service.BuildDockerfile].
	BuildDockerfile(ctx context.Context, c access.Caller, archive io.Reader, r dockerfile.Request, tell func(dockerfile.Event)) (image.Status, error)
	// Forget deletes an image by its digest, if it has no name and nobody uses it.
	Forget(ctx context.Context, digest string) error
}

// mostBuilds bounds the builds of Dockerfiles that templates have go on, or wait: each has its context on the disk.
const mostBuilds = 6

// toMake checks a request for a template whose image is to be made, and reports whether there is something to do. Who may
// is who may build and pull by the images' own verbs.
func (s *Service) toMake(ctx context.Context, c access.Caller, r *Request) (bool, error) {
	if s.o.Images == nil {
		return false, fault.New(fault.Unsupported, "this server makes no images for templates").WithRemedy("name an image that is here")
	}
	text := r.Spec.Dockerfile
	if text == "" {
		err := s.o.Images.Here(ctx, r.Spec.Image)
		if !fault.Is(err, fault.NotFound) {
			return false, err
		}
		if !s.known(r.Spec.Image) {
			return false, err
		}
		return true, mayMake(c, err, "bring one")
	}
	if r.Files == nil {
		return false, fault.New(fault.Internal, "a Dockerfile without its context")
	}
	if err := mayMake(c, nil, "build a Dockerfile"); err != nil {
		return false, err
	}
	if _, err := dockerfile.Parse([]byte(text), dockerfile.Options{Arch: runtime.GOARCH}); err != nil {
		return false, check.Below("dockerfile: ", err)
	}
	return true, nil
}

// mayMake refuses who is no administrator, with what they lack.
func mayMake(c access.Caller, missing error, what string) error {
	err := c.Require(access.Admin)
	if err == nil {
		return nil
	}
	reason := "images are built and brought by tokens with the scope admin, which this one has not, and it asks to " + what
	if missing != nil {
		reason = fault.As(missing).Message + "; " + reason
	}
	return fault.Wrap(fault.Denied, err, "%s", reason).WithRemedy("use a token of the project with the scope admin, or an image that is here: sandpit image ls")
}

// known reports whether a name is one of the catalogue's, or may be one of a registry's.
func (s *Service) known(name string) bool {
	_, ok := s.resolves(name)
	return ok || strings.ContainsAny(name, "/:")
}

// startOf returns the start command of an image, as a text for a shell; "" if it has none.
func (s *Service) startOf(name string) string {
	if e, ok := s.resolves(name); ok && len(e.Start) > 0 { // the engine says what is wrong with the name
		return Command(e.Start)
	}
	return ""
}

func (s *Service) resolves(name string) (image.Entry, bool) {
	if s.o.Resolve == nil {
		return image.Entry{}, false
	}
	e, err := s.o.Resolve(name)
	return e, err == nil
}

// maker is who builds and pulls for a project: with the rights to images of who asked for it, and no others.
func (w *work) maker() access.Caller {
	c := w.c
	c.Scopes = []access.Scope{access.Admin}
	if w.by.May(access.ServerAdmin) {
		c.Scopes = []access.Scope{access.ServerAdmin}
	}
	return c
}

// bring has the image of a version brought.
func (w *work) bring(ctx context.Context) *template.Failure {
	w.log.say("bringing the image %s", w.t.Spec.Image)
	if err := w.s.o.Images.Bring(ctx, w.maker(), w.t.Spec.Image); err != nil {
		return w.failure(ctx, err, nil)
	}
	w.log.say("it is here")
	return nil
}

// image builds the Dockerfile of a version, and returns the digest of its image.
func (w *work) image(ctx context.Context) (string, *template.Failure) {
	var said string
	var out []byte
	made, err := w.s.o.Images.BuildDockerfile(ctx, w.maker(), w.files, dockerfile.Request{}, func(e dockerfile.Event) {
		switch {
		case e.Output != nil:
			_, _ = w.log.Write(e.Output)
			out = last(append(out, e.Output...), template.MaxOutput)
		case e.Text != said:
			said, out = e.Text, nil
			w.log.say("%s", strings.TrimSpace(e.Stage+": "+e.Text))
		}
	})
	if err != nil {
		return "", w.failure(ctx, err, out)
	}
	w.log.say("the image is %s", made.Image.Digest)
	w.s.o.Checkpoint("template.image")
	if w.made != nil {
		w.made()
	}
	return made.Image.Digest, nil
}

// failure is why a version could not be made, which its log ends with.
func (w *work) failure(ctx context.Context, err error, out []byte) *template.Failure {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	e := fault.As(err)
	w.log.say("%s", e.Message)
	return &template.Failure{Reason: e.Message, Output: strings.ToValidUTF8(string(out), "\uFFFD")}
}
