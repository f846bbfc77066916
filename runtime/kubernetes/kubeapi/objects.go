// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// Kind is a kind of object in namespaces.
type Kind[T any] struct {
	Name  string // as in paths, "pods"
	group string // "/api/v1"
}

// Pods is the kind of pods.
func Pods() Kind[corev1.Pod] { return Kind[corev1.Pod]{"pods", "/api/v1"} }

// Claims is the kind of claims of volumes.
func Claims() Kind[corev1.PersistentVolumeClaim] {
	return Kind[corev1.PersistentVolumeClaim]{"persistentvolumeclaims", "/api/v1"}
}

// Policies is the kind of policies of networks.
func Policies() Kind[networkv1.NetworkPolicy] {
	return Kind[networkv1.NetworkPolicy]{"networkpolicies", "/apis/networking.k8s.io/v1"}
}

func (k Kind[T]) path(namespace string, name ...string) string {
	p := k.group + "/namespaces/" + url.PathEscape(namespace) + "/" + k.Name
	for _, n := range name {
		p += "/" + url.PathEscape(n)
	}
	return p
}

// Create makes an object, and returns it as the API server has it.
func (k Kind[T]) Create(ctx context.Context, c *Client, namespace string, o *T) (*T, error) {
	made := new(T)
	return made, c.do(ctx, http.MethodPost, k.path(namespace), nil, "application/json", o, made)
}

// Try returns an object as the API server would have it, or why it would refuse to. Nothing is made.
func (k Kind[T]) Try(ctx context.Context, c *Client, namespace string, o *T) (*T, error) {
	got := new(T)
	return got, c.do(ctx, http.MethodPost, k.path(namespace), url.Values{"dryRun": {"All"}}, "application/json", o, got)
}

// Get returns an object.
func (k Kind[T]) Get(ctx context.Context, c *Client, namespace, name string) (*T, error) {
	got := new(T)
	return got, c.do(ctx, http.MethodGet, k.path(namespace, name), nil, "", nil, got)
}

// Delete deletes one object: that with the uid. grace is in seconds; below zero: the object's own.
func (k Kind[T]) Delete(ctx context.Context, c *Client, namespace, name string, uid types.UID, grace int64) error {
	o := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid}}
	if grace >= 0 {
		o.GracePeriodSeconds = &grace
	}
	return c.do(ctx, http.MethodDelete, k.path(namespace, name), nil, "application/json", o, nil)
}

// Change changes fields of an object, or of a subresource of it, "", by a strategic merge patch: elements of lists are found by
// their names.
func (k Kind[T]) Change(ctx context.Context, c *Client, namespace, name, subresource string, patch any) (*T, error) {
	path := []string{name}
	if subresource != "" {
		path = append(path, subresource)
	}
	got := new(T)
	return got, c.do(ctx, http.MethodPatch, k.path(namespace, path...), nil, "application/strategic-merge-patch+json", patch, got)
}

// pageSize is how many objects a list is read at a time.
const pageSize = 500

// list is a list of any kind.
type list[T any] struct {
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// List returns the objects that a selector of labels selects, and the version of the list, from which on a watch goes on.
func (k Kind[T]) List(ctx context.Context, c *Client, namespace, selector string) (all []T, version string, err error) {
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(pageSize)}}
	for {
		var page list[T]
		if err := c.do(ctx, http.MethodGet, k.path(namespace), query, "", nil, &page); err != nil {
			return nil, "", err
		}
		all = append(all, page.Items...)
		if page.Continue == "" {
			return all, page.ResourceVersion, nil
		}
		query.Set("continue", page.Continue)
	}
}

// Version returns what the API server says of its own.
func (c *Client) Version(ctx context.Context) (version.Info, error) {
	var v version.Info
	return v, c.do(ctx, http.MethodGet, "/version", nil, "", nil, &v)
}

// Right is a verb on a kind of object in a namespace.
type Right struct{ Verb, Group, Resource, Subresource string }

// String returns it as in "patch pods/resize".
func (r Right) String() string {
	if r.Subresource != "" {
		return r.Verb + " " + r.Resource + "/" + r.Subresource
	}
	return r.Verb + " " + r.Resource
}

// May reports whether the client's account has a right.
func (c *Client) May(ctx context.Context, namespace string, r Right) (bool, error) {
	ask := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		}},
	}
	var got authorizationv1.SelfSubjectAccessReview
	err := c.do(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, "application/json", ask, &got)
	return got.Status.Allowed, err
}
