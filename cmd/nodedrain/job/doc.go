// Package job has the commands about jobs.
package job
