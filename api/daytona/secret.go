// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// secretOf is a secret of the vault; its name, of which there is one, is its id.
func secretOf(s *sandbox.Secret) wire.Secret {
	return wire.Secret{
		ID: s.Name, Name: s.Name, Description: s.Description, Placeholder: s.StandIn(), Hosts: s.Hosts, CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

type createSecret struct {
	Body wire.CreateSecret
}

func (a *API) createSecret(ctx context.Context, c *httpapi.Call, in *createSecret) (wire.Secret, error) {
	b := &in.Body
	if len(b.Hosts) == 0 {
		e := fault.InvalidField("hosts", "is missing, and no secret goes to every host here")
		e.Code = fault.Unsupported
		return wire.Secret{}, e.WithRemedy("name the hosts that may have it, such as api.example.com or *.example.com")
	}
	s, err := a.Secrets.AddToVault(ctx, c.Caller, secrets.VaultRequest{Name: b.Name, Value: b.Value, Hosts: b.Hosts, Description: given(b.Description)})
	if err != nil {
		return wire.Secret{}, err
	}
	return secretOf(&s), nil
}

func (a *API) listSecrets(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) ([]wire.Secret, error) {
	all, err := a.Secrets.Vault(ctx, c.Caller)
	out := make([]wire.Secret, len(all))
	for i := range all {
		out[i] = secretOf(&all[i])
	}
	return out, err
}

type secretPage struct {
	Cursor *string `query:"cursor"`
	Limit  *int    `query:"limit"`
	Name   *string `query:"name"`
	Sort   *string `query:"sort"`
	Order  *string `query:"order"`
}

// Bounds of a page of secrets.
const (
	defaultSecrets = 100
	maxSecrets     = 200
)

// pageOfSecrets answers with a part of the list. A cursor is the name of the last one that was told.
func (a *API) pageOfSecrets(ctx context.Context, c *httpapi.Call, in *secretPage) (wire.SecretPage, error) {
	limit := defaultSecrets
	if in.Limit != nil {
		limit = *in.Limit
	}
	by, err := in.less()
	if err != nil {
		return wire.SecretPage{}, err
	}
	if limit < 1 || limit > maxSecrets {
		return wire.SecretPage{}, fault.InvalidField("limit", "%d is outside 1 to %d", limit, maxSecrets)
	}
	all, err := a.listSecrets(ctx, c, nil)
	if err != nil {
		return wire.SecretPage{}, err
	}
	all = slices.DeleteFunc(all, func(s wire.Secret) bool { return !strings.Contains(s.Name, given(in.Name)) })
	slices.SortStableFunc(all, by)
	out := wire.SecretPage{Total: len(all)}
	if in.Cursor != nil && *in.Cursor != "" {
		at := slices.IndexFunc(all, func(s wire.Secret) bool { return s.ID == *in.Cursor })
		if at < 0 {
			return wire.SecretPage{}, fault.InvalidField("cursor", "%q is of no secret that this list has", sandbox.Clip(*in.Cursor, 80)).WithRemedy("list them from the beginning")
		}
		all = all[at+1:]
	}
	if len(all) > limit {
		all = all[:limit]
		out.NextCursor = &all[limit-1].ID
	}
	out.Items = all
	return out, nil
}

// less returns the order of a list: the newest first, unless it is asked for otherwise.
func (in *secretPage) less() (func(x, y wire.Secret) int, error) {
	var by func(x, y wire.Secret) int
	switch sort := cmp.Or(given(in.Sort), "createdAt"); sort {
	case "name":
		by = func(x, y wire.Secret) int { return cmp.Compare(x.Name, y.Name) }
	case "createdAt":
		by = func(x, y wire.Secret) int { return x.CreatedAt.Compare(y.CreatedAt) }
	case "updatedAt":
		by = func(x, y wire.Secret) int { return x.UpdatedAt.Compare(y.UpdatedAt) }
	default:
		return nil, fault.InvalidField("sort", "%q is none of name, createdAt and updatedAt", sandbox.Clip(sort, 40))
	}
	switch order := cmp.Or(given(in.Order), "desc"); order {
	case "asc":
		return by, nil
	case "desc":
		return func(x, y wire.Secret) int { return by(y, x) }, nil
	default:
		return nil, fault.InvalidField("order", "%q is neither asc nor desc", sandbox.Clip(order, 40))
	}
}

type bySecret struct {
	Secret string `path:"secret"`
}

func (a *API) getSecret(ctx context.Context, c *httpapi.Call, in *bySecret) (wire.Secret, error) {
	all, err := a.listSecrets(ctx, c, nil)
	if err != nil {
		return wire.Secret{}, err
	}
	at := slices.IndexFunc(all, func(s wire.Secret) bool { return s.ID == in.Secret })
	if at < 0 {
		return wire.Secret{}, fault.New(fault.NotFound, "there is no secret %q", sandbox.Clip(in.Secret, 80))
	}
	return all[at], nil
}

type updateSecret struct {
	bySecret
	Body wire.UpdateSecret
}

func (a *API) updateSecret(ctx context.Context, c *httpapi.Call, in *updateSecret) (wire.Secret, error) {
	s, err := a.Secrets.ChangeInVault(ctx, c.Caller, in.Secret, secrets.VaultChange{Value: in.Body.Value, Description: in.Body.Description, Hosts: in.Body.Hosts})
	if err != nil {
		return wire.Secret{}, err
	}
	return secretOf(&s), nil
}

func (a *API) deleteSecret(ctx context.Context, c *httpapi.Call, in *bySecret) (httpapi.None, error) {
	return httpapi.None{}, a.Secrets.DeleteFromVault(ctx, c.Caller, in.Secret)
}

// attachments reads which secrets a sandbox shall have, by the names of variables.
func attachments(list []map[string]string) (map[string]string, error) {
	out := make(map[string]string)
	for i, one := range list {
		if len(one) != 1 {
			return nil, fault.InvalidField(fmt.Sprintf("secrets[%d]", i), "has %d members; it is one variable's name, and the name of a secret", len(one))
		}
		for name, secret := range one {
			if secret == "" {
				return nil, fault.InvalidField(fmt.Sprintf("secrets[%d]", i), "names no secret for %s", sandbox.Clip(name, 80))
			}
			if _, twice := out[name]; twice {
				return nil, fault.InvalidField(fmt.Sprintf("secrets[%d]", i), "is the second for %s", sandbox.Clip(name, 80))
			}
			out[name] = secret
		}
	}
	return out, nil
}

type updateSandboxSecrets struct {
	Ref  string `path:"id"`
	Body wire.SandboxSecrets
}

// updateSandboxSecrets has a sandbox have those secrets, and no others of the vault.
func (a *API) updateSandboxSecrets(ctx context.Context, c *httpapi.Call, in *updateSandboxSecrets) (*sandbox.Sandbox, error) {
	all, err := attachments(in.Body.Secrets)
	if err != nil {
		return nil, err
	}
	if err := a.Secrets.Attach(ctx, c.Caller, in.Ref, all); err != nil {
		return nil, err
	}
	return a.Sandboxes.Get(ctx, c.Caller, in.Ref)
}
