class _SkillzMemory:
    def get(self, key):
        return _skillz_request("memory/get", {"key": key})["value"]
    def set(self, key, value, ttl=None):
        _skillz_request("memory/set", {"key": key, "value": value, "ttl": ttl})
    def list(self, prefix=""):
        return _skillz_request("memory/list", {"prefix": prefix})["keys"]
    def delete(self, key):
        return _skillz_request("memory/delete", {"key": key})["deleted"]
class _SkillzResources:
    def list(self):
        return _skillz_request("resources/list", {})
    def read(self, uri):
        return _skillz_request("resources/read", {"uri": uri})
class _Skillz:
    def __init__(self):
        self.memory = _SkillzMemory()
        self.resources = _SkillzResources()
    def call(self, name, arguments=None, **named):
        return call(name, arguments, **named)
    def search(self, query):
        return _skillz_request("tools/list", {"query": query})["tools"]
    def describe(self, name):
        return _skillz_request("tools/describe", {"name": name})
    def log(self, message, level="info", data=None):
        _skillz_request("log", {"level": level, "message": str(message), "data": data})
    def progress(self, current, total=None, message=None):
        _skillz_request("progress", {"current": current, "total": total, "message": message})
    def ask(self, message, schema):
        answer = _skillz_request("elicitation/create", {"message": message, "requestedSchema": schema})
        if answer["action"] != "accept":
            raise RuntimeError("The user did not answer: " + answer["action"])
        return answer["content"]
    def sample(self, prompt, max_tokens=1000):
        message = {"role": "user", "content": {"type": "text", "text": prompt}}
        content = _skillz_request("sampling/createMessage", {"messages": [message], "maxTokens": max_tokens})["content"]
        parts = content if isinstance(content, list) else [content]
        return "".join([part["text"] for part in parts if "text" in part])
skillz = _Skillz()
