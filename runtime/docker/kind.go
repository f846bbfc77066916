// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Kind is the docker runtime as a server is told of it.
type Kind struct {
	// Host is where the Engine listens: unix:///PATH, tcp://HOST:PORT, or auto, which is what
	// DOCKER_HOST says, or else the first of the usual sockets at which one answers. "": the server
	// has no docker runtime.
	Host string `yaml:"host"`
	// CertPath is a directory with ca.pem, cert.pem and key.pem, for an Engine over TLS.
	CertPath string `yaml:"cert_path"`
	// Runtime is the OCI runtime that containers get, of those that the Engine has: runsc, kata; "":
	// the Engine's default.
	Runtime string `yaml:"runtime"`
	// Stream has agents reached by streams of the Engine's, as they always are over TCP, and where the Engine
	// does not see the server's files.
	Stream bool `yaml:"stream"`

	environment engineapi.Environment
	clock       engineapi.Clock // of what bounds calls to the Engine
}

var (
	_ runtime.Kind     = (*Kind)(nil)
	_ runtime.Optional = (*Kind)(nil)
)

// Want asks for it: of the Engine that Docker's own programs would use, where none is named.
func (k *Kind) Want() { k.Host = cmp.Or(k.Host, autoHost) }

// autoHost asks for the Engine that Docker's own programs would use.
const autoHost = "auto"

// Name returns "docker".
func (k *Kind) Name() string { return "docker" }

// Wanted reports whether the section names an Engine.
func (k *Kind) Wanted() bool { return k.Host != "" }

// Variables returns those of the section, and Docker's own, which count where the host is auto.
func (k *Kind) Variables() map[string]any {
	return map[string]any{
		"SANDPIT_DOCKER_HOST": &k.Host, "SANDPIT_DOCKER_CERT_PATH": &k.CertPath, "SANDPIT_DOCKER_RUNTIME": &k.Runtime,
		"DOCKER_HOST": &k.environment.Host, "DOCKER_TLS_VERIFY": &k.environment.TLSVerify, "DOCKER_CERT_PATH": &k.environment.CertPath,
		"XDG_RUNTIME_DIR": &k.environment.RuntimeDir, "HOME": &k.environment.Home,
	}
}

// engine returns where the Engine is looked for.
func (k *Kind) engine() engineapi.Environment {
	e := k.environment
	e.UID = os.Geteuid()
	if k.Host != autoHost {
		e.Host = k.Host
	}
	e.CertPath = cmp.Or(k.CertPath, e.CertPath)
	return e
}

// Check checks the section.
func (k *Kind) Check() error {
	if !k.Wanted() {
		if k.CertPath != "" || k.Runtime != "" || k.Stream {
			return fault.InvalidField("docker.host", "it is not set, and docker.cert_path, docker.runtime or docker.stream is").
				WithRemedy("set docker.host to unix:///PATH, tcp://HOST:PORT or auto")
		}
		return nil
	}
	if strings.Trim(k.Runtime, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" || len(k.Runtime) > 100 {
		return fault.InvalidField("docker.runtime", "%q is not the name of a runtime", sandbox.Clip(k.Runtime, 40))
	}
	e := k.engine()
	if e.Host == "" {
		return nil
	}
	if err := e.Check(); err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && k.Host != autoHost && len(f.Fields) == 1 && f.Fields[0].Name == "DOCKER_HOST" {
			return fault.InvalidField("docker.host", "%s", f.Fields[0].Message).WithRemedy("%s", f.Remedy)
		}
		return err
	}
	return nil
}

// namespace is what containers of a data directory are known by.
func namespaceOf(p runtime.Place) string {
	if p.Namespace != "" {
		return p.Namespace
	}
	sum := sha256.Sum256([]byte(p.Dir))
	return hex.EncodeToString(sum[:6])
}

func (k *Kind) options(o runtime.OpenOptions) Options {
	return Options{Dir: o.Dir, Namespace: namespaceOf(o.Place), Engine: k.engine(), Runtime: k.Runtime, Stream: k.Stream, Patient: o.Patient, Agent: o.Agent, Logger: o.Logger, clock: k.clock}
}

// Open opens the driver.
func (k *Kind) Open(ctx context.Context, o runtime.OpenOptions) (runtime.Driver, error) {
	d, err := Open(ctx, k.options(o))
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Inspect looks for containers that run and should not, and for directories of containers that are gone.
func (k *Kind) Inspect(ctx context.Context, p runtime.Place, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	if _, err := os.Lstat(p.Dir); os.IsNotExist(err) {
		return nil, nil
	}
	d, err := Open(ctx, k.options(runtime.OpenOptions{Place: p}))
	if err != nil {
		return nil, err
	}
	found, err := d.inspect(ctx, undue, mend)
	return found, errors.Join(err, d.Close())
}

func (d *Driver) inspect(ctx context.Context, undue func(sandbox.ID) string, mend bool) ([]runtime.Finding, error) {
	list, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []runtime.Finding
	for _, h := range list {
		opened, err := d.Open(ctx, h)
		if err != nil {
			return out, err
		}
		i := opened.(*Instance) //nolint:forcetypeassert // Open returns no other
		_, over := i.life()
		f := runtime.Finding{Name: "sandbox " + string(h.ID)}
		switch why := undue(h.ID); {
		case over == nil && why != "":
			f.What = "its container runs: " + why
			if mend {
				if f.Err = i.Stop(ctx, 0); f.Err == nil {
					f.Done = "it was stopped"
				}
			}
		case i.its() == "":
			f.What = "its container is gone, and its directory is there"
			if mend {
				if f.Err = i.Remove(ctx); f.Err == nil {
					f.Done = "the directory was removed"
				}
			}
		case i.drift() && !mend: // what mends it is the sandbox's next start
			f.What = driftText + "; " + driftRemedy
		default:
			continue
		}
		out = append(out, f)
	}
	return out, nil
}
