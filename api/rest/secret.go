// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"maps"
	"slices"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/sandbox"
)

// A secret is a project's, or one sandbox's; the operations of both differ in the path
// alone, and an empty Ref is the project.

type setSecret struct {
	Secret string `path:"secret" doc:"the secret's name"`
	Body   v1.SetSecret
}

type setSecretOf struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	setSecret
}

func (a *API) setSecret(ctx context.Context, c *idempotency.Call, in *setSecret) (v1.Secret, error) {
	return a.putSecret(ctx, c, "", in)
}

func (a *API) setSecretOf(ctx context.Context, c *idempotency.Call, in *setSecretOf) (v1.Secret, error) {
	return a.putSecret(ctx, c, in.Ref, &in.setSecret)
}

func (a *API) putSecret(ctx context.Context, c *idempotency.Call, ref string, in *setSecret) (v1.Secret, error) {
	s, err := a.Secrets.SetSecret(ctx, c.Caller, ref, secrets.Request{
		Name: in.Secret, Value: in.Body.Value, Hosts: in.Body.Hosts, Header: httpapi.Given(in.Body.Header), Format: httpapi.Given(in.Body.Format), StandInHeaders: in.Body.StandInHeaders,
	})
	if err != nil {
		return v1.Secret{}, err
	}
	return secretOf(&s), nil
}

func (a *API) listSecrets(ctx context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.SecretList, error) {
	return a.secrets(ctx, c, "")
}

func (a *API) listSecretsOf(ctx context.Context, c *idempotency.Call, in *byRef) (v1.SecretList, error) {
	return a.secrets(ctx, c, in.Ref)
}

func (a *API) secrets(ctx context.Context, c *idempotency.Call, ref string) (v1.SecretList, error) {
	got, err := a.Secrets.Secrets(ctx, c.Caller, ref)
	if err != nil {
		return v1.SecretList{}, err
	}
	out := v1.SecretList{Items: make([]v1.Secret, 0, len(got))}
	for i := range got {
		out.Items = append(out.Items, secretOf(&got[i]))
	}
	return out, nil
}

type bySecret struct {
	Secret string `path:"secret" doc:"the secret's name"`
}

type bySecretOf struct {
	Ref string `path:"id" doc:"the sandbox's id or key"`
	bySecret
}

func (a *API) getSecret(ctx context.Context, c *idempotency.Call, in *bySecret) (v1.Secret, error) {
	return a.secret(ctx, c, "", in.Secret)
}

func (a *API) getSecretOf(ctx context.Context, c *idempotency.Call, in *bySecretOf) (v1.Secret, error) {
	return a.secret(ctx, c, in.Ref, in.Secret)
}

func (a *API) secret(ctx context.Context, c *idempotency.Call, ref, name string) (v1.Secret, error) {
	s, err := a.Secrets.Secret(ctx, c.Caller, ref, name)
	if err != nil {
		return v1.Secret{}, err
	}
	return secretOf(&s), nil
}

func (a *API) deleteSecret(ctx context.Context, c *idempotency.Call, in *bySecret) (httpapi.None, error) {
	return httpapi.None{}, a.Secrets.DeleteSecret(ctx, c.Caller, "", in.Secret)
}

func (a *API) deleteSecretOf(ctx context.Context, c *idempotency.Call, in *bySecretOf) (httpapi.None, error) {
	return httpapi.None{}, a.Secrets.DeleteSecret(ctx, c.Caller, in.Ref, in.Secret)
}

func secretOf(s *sandbox.Secret) v1.Secret {
	out := v1.Secret{
		Name: s.Name, SandboxID: shape.TextOrNull(string(s.Sandbox)), Hosts: s.Hosts, Header: s.Header, Format: s.Format, StandInHeaders: s.StandInHeaders,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	if out.Hosts == nil {
		out.Hosts = []string{}
	}
	return out
}

// createSecrets reads those that a create brings, by their names: each a value, or an
// object.
func createSecrets(sp *httpapi.Spellings, all map[string]any) map[string]secrets.Request {
	if len(all) > sandbox.MaxSecrets {
		sp.Add("secrets", "has %d, more than %d", len(all), sandbox.MaxSecrets)
		return nil
	}
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]secrets.Request, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field := "secrets." + sandbox.Clip(name, 80)
		switch v := all[name].(type) {
		case string:
			out[name] = secrets.Request{Value: v}
		case map[string]any:
			out[name] = secretObject(sp, field, v)
		default:
			sp.Add(field, "is neither a text, the value, nor an object with value, hosts, header, format and stand_in_headers")
		}
	}
	return out
}

func secretObject(sp *httpapi.Spellings, field string, v map[string]any) (r secrets.Request) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		at := field + "." + sandbox.Clip(name, 80)
		var to *string
		switch name {
		case "value":
			to = &r.Value
		case "header":
			to = &r.Header
		case "format":
			to = &r.Format
		case "hosts":
			r.Hosts = texts(sp, at, v[name])
			continue
		case "stand_in_headers":
			r.StandInHeaders = append([]string{}, texts(sp, at, v[name])...)
			continue
		default:
			sp.Add(at, "is unknown; there are value, hosts, header, format and stand_in_headers")
			continue
		}
		text, ok := v[name].(string)
		if !ok {
			sp.Add(at, "is no text")
		}
		*to = text
	}
	return r
}
