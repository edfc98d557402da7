// Package service shows the catalogue of services.
package service
