// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandpit.dev/fault"
)

// maxStatus bounds what is read of a refusal.
const maxStatus = 1 << 20

// refusal returns the error of an answer that is not good, with the API server's own reason.
func (c *Client) refusal(method, path string, resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatus)) // what there is of it
	var s metav1.Status
	if err := json.Unmarshal(b, &s); err != nil || s.Message == "" {
		s.Message = strings.TrimSpace(string(b))
	}
	said := clip(s.Message, 500)
	if said == "" {
		said = resp.Status
	}
	code, remedy := fault.Unavailable, ""
	switch {
	case resp.StatusCode == http.StatusNotFound && strings.Contains(said, "namespaces"):
		code, remedy = fault.Unavailable, "make the namespace: kubectl create namespace NAME"
	case resp.StatusCode == http.StatusNotFound:
		code = fault.NotFound
	case s.Reason == metav1.StatusReasonAlreadyExists:
		code = fault.Exists
	case resp.StatusCode == http.StatusConflict:
		code = fault.Conflict
	case resp.StatusCode == http.StatusGone:
		code = fault.PreconditionFailed
	case resp.StatusCode == http.StatusForbidden && strings.Contains(said, "exceeded quota"):
		code, remedy = fault.Exhausted, "delete sandboxes, or have the namespace's quota raised"
	case resp.StatusCode == http.StatusForbidden && strings.Contains(said, "violates PodSecurity"):
		code, remedy = fault.Unsupported, "have the namespace admit the pods: see its label pod-security.kubernetes.io/enforce"
	case resp.StatusCode == http.StatusForbidden && strings.Contains(said, "being terminated"):
		code, remedy = fault.Unavailable, "the namespace is being deleted: name another"
	case resp.StatusCode == http.StatusForbidden:
		remedy = "grant the server's account that verb, by a role and a binding: docs/kubernetes.md has them"
	case resp.StatusCode == http.StatusUnauthorized:
		remedy = "the credentials of the kubeconfig, or of the pod's account, are not good any more"
	case resp.StatusCode == http.StatusUnprocessableEntity, resp.StatusCode == http.StatusBadRequest:
		code = fault.Invalid
	case resp.StatusCode == http.StatusTooManyRequests:
		remedy = "try again: the API server limits how much it is asked"
	}
	err := fault.New(code, "the API server at %s refuses %s %s: %s", c.base.Host, method, path, said)
	if remedy != "" {
		err = err.WithRemedy("%s", remedy)
	}
	return err
}

// clip cuts a text of the cluster's.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
