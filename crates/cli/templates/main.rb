# The arguments are JSON in SKILLZ_ARGUMENTS; whatever is printed is the result.
require "json"

arguments = JSON.parse(ENV.fetch("SKILLZ_ARGUMENTS"))
puts JSON.generate(words: arguments.fetch("text").split.first(arguments.fetch("limit", 10)).length)
