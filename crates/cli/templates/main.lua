-- The arguments are JSON in SKILLZ_ARGUMENTS; whatever is printed is the result.
local text = os.getenv("SKILLZ_ARGUMENTS"):match('"text"%s*:%s*"(.-)"') or ""
local words = 0
for _ in text:gmatch("%S+") do
  words = words + 1
end
print(string.format('{"words": %d}', words))
