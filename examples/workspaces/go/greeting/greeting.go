// Package greeting is what the programs of this module share.
package greeting

// From returns a greeting.
func From(who string) string { return "Hello from " + who }
