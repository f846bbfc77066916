// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// pulling is what a token is asked for to read a repository.
const pulling = "pull"

func (p place) key(actions string) string { return p.host + "/" + p.repository + " " + actions }

// authorization returns what a registry that asked for it is told, for these actions.
func (r *remote) authorization(p place, actions string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tokens[p.key(actions)]
	if !ok || time.Now().After(t.until) {
		return ""
	}
	return t.header
}

// authorize finds out what a registry that refused wants to be told.
func (r *remote) authorize(ctx context.Context, p place, actions string, challenges []string) error {
	basic := func(req *http.Request) {
		if p.entry.Username != "" {
			req.SetBasicAuth(p.entry.Username, p.entry.Password)
		}
	}
	for _, c := range challenges {
		scheme, rest, _ := strings.Cut(c, " ")
		if strings.EqualFold(scheme, "basic") && p.entry.Username != "" {
			req := &http.Request{Header: http.Header{}}
			basic(req)
			r.keep(p, actions, req.Header.Get("Authorization"), time.Hour)
			return nil
		}
		if !strings.EqualFold(scheme, "bearer") {
			continue
		}
		fields := parameters(rest)
		u, err := url.Parse(fields["realm"])
		if err != nil {
			return refusedRemote("its realm %s cannot be read", shown(fields["realm"]))
		}
		if err := r.allowed(u); err != nil {
			return err
		}
		q := u.Query()
		if s := fields["service"]; s != "" {
			q.Set("service", s)
		}
		q.Set("scope", "repository:"+p.repository+":"+actions)
		u.RawQuery = q.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		basic(req)
		res, err := r.client.Do(req)
		if err != nil {
			return unreachable(p, err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return answered(p, "token", res.StatusCode)
		}
		data, err := small(res.Body, maxTokenBytes)
		if err != nil {
			return err
		}
		var t struct {
			Token       string `json:"token"`
			AccessToken string `json:"access_token"`
			ExpiresIn   int    `json:"expires_in"`
		}
		if err := json.Unmarshal(data, &t); err != nil {
			return refusedRemote("its token cannot be read")
		}
		if t.Token == "" {
			t.Token = t.AccessToken
		}
		if t.Token == "" || strings.ContainsAny(t.Token, "\r\n") {
			return refusedRemote("its token is empty, or has a line's end in it")
		}
		r.keep(p, actions, "Bearer "+t.Token, time.Duration(min(max(t.ExpiresIn, 60), 3600))*time.Second-10*time.Second)
		return nil
	}
	return answered(p, "", http.StatusUnauthorized)
}

// maxTokens bounds the tokens that are kept.
const maxTokens = 256

func (r *remote) keep(p place, actions, header string, long time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tokens) >= maxTokens {
		clear(r.tokens)
	}
	r.tokens[p.key(actions)] = token{header, time.Now().Add(long)}
}

// parameters reads name="value" with commas between.
func parameters(text string) map[string]string {
	out := make(map[string]string)
	for text != "" && len(out) < 16 {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			break
		}
		name = strings.ToLower(strings.Trim(name, " ,"))
		var value string
		if strings.HasPrefix(rest, `"`) {
			value, text, _ = strings.Cut(rest[1:], `"`)
		} else {
			value, text, _ = strings.Cut(rest, ",")
		}
		out[name] = value
	}
	return out
}
